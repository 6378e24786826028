"""The systems of ridge regression on random features of a scale-free problem.

Features and target are defined as in `orderparam.kernels.feature_equivalent`: there are eigenvalues
k^-a and target powers k^-b with k = 1 ... M, P examples (`n_train`) and N features (`width`), and
the penalty ridge |weights|^2 is added to the summed squared error.
"""

import abc
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from orderparam.core.system import System, parameter
from orderparam.kernels.spectra import power_law_levels
from orderparam.kernels.spectrum import Spectrum


class ScaleFree(System):
    r"""A kernel with eigenvalues $\lambda_k = k^{-a}$ and a target with powers $y_k^2 = k^{-b}$.

    a > 1 is `spectral_decay`, b > 1 is `target_decay`; the number M of `modes` may be infinite for
    a theory.

    Raises:
        ValueError: for a finite number of modes that is not whole.
    """

    spectral_decay: float = parameter("a: eigenvalue k is k^-a", above=1, default=2.0, kw_only=True)
    target_decay: float = parameter(
        "b: the target's power on mode k is k^-b", above=1, default=2.0, kw_only=True
    )
    ridge: float = parameter(
        "penalty beside the summed squared error", above=0, default=1e-6, kw_only=True
    )
    noise: float = parameter("variance of the label noise", minimum=0, default=0.0, kw_only=True)
    modes: float = parameter(
        "number M of modes", minimum=1, infinite=True, default=jnp.inf, kw_only=True
    )

    def __check_init__(self) -> None:
        given: Any = self.modes
        if isinstance(given, jax.core.Tracer):
            return
        modes = np.asarray(given)
        if np.any(np.isfinite(modes) & (modes != np.floor(modes))):
            raise ValueError(
                f"{type(self).__name__}.modes = {modes}: must be a whole number or infinite"
            )

    @property
    def spectrum(self) -> Spectrum:
        """The spectrum in levels (see `orderparam.kernels.spectra.power_law_levels`)."""
        return power_law_levels(self.spectral_decay, self.target_decay, self.modes)

    @property
    @abc.abstractmethod
    def sizes(self) -> tuple[Any, Any]:
        """(P, N)."""

    @property
    @abc.abstractmethod
    def drawn_sizes(self) -> tuple[int, int]:
        """(P, N) of an experiment, as whole numbers."""


class ScaleFreeFeatures(ScaleFree):
    """`ScaleFree` with P examples (`n_train`) and N features (`width`).

    `bordelon`, `paquette` and `caponnetto` translate the exponents of three papers.
    """

    n_train: float = parameter("number of training examples P", above=0)
    width: float = parameter(
        "number of features N; infinite: the kernel itself", above=0, infinite=True
    )

    @property
    def sizes(self) -> tuple[Any, Any]:
        return self.n_train, self.width

    @property
    def drawn_sizes(self) -> tuple[int, int]:
        return self.size("n_train"), self.size("width")

    @classmethod
    def bordelon(cls, a: float, b: float, n_train: Any, width: Any, **fields: Any) -> Self:
        """The system in the notation of Bordelon, Atanasov, Pehlevan (2024): lambda_k = k^-b,
        lambda_k w_k^2 = k^-a.
        """
        return cls(n_train, width, spectral_decay=b, target_decay=a, **fields)

    @classmethod
    def paquette(cls, alpha: float, beta: float, n_train: Any, width: Any, **fields: Any) -> Self:
        """The system in the notation of Paquette et al. (2024): lambda_k = k^(-2 alpha),
        coefficient k^-beta of sqrt(lambda_k) z_k.
        """
        return cls(
            n_train, width, spectral_decay=2 * alpha, target_decay=2 * (alpha + beta), **fields
        )

    @classmethod
    def caponnetto(
        cls, capacity: float, source: float, n_train: Any, width: Any, **fields: Any
    ) -> Self:
        """The system in the notation of Caponnetto, De Vito (2007): lambda_k = k^-capacity, y_k^2 =
        k^(-1 - 2 source capacity).
        """
        return cls(
            n_train,
            width,
            spectral_decay=capacity,
            target_decay=1 + 2 * source * capacity,
            **fields,
        )


class ParameterBudget(ScaleFree):
    """`ScaleFree` with N + P = `total` given and shared between features and examples."""

    total: float = parameter("features and examples together, N + P", minimum=2)
    data_share: float = parameter("P/(N + P)", above=0, below=1, default=0.5)

    @property
    def sizes(self) -> tuple[Any, Any]:
        return self.data_share * self.total, (1 - self.data_share) * self.total

    @property
    def drawn_sizes(self) -> tuple[int, int]:
        total = self.size("total")
        n_train = min(max(round(float(self.data_share) * total), 1), total - 1)
        return n_train, total - n_train
