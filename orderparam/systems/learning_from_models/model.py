"""Systems of learning from models: chains of ridge regressions, and one regression under other test
laws.

A model is trained on labels that another model made. The other model may be larger (distillation),
smaller (weak-to-strong generalisation), or an earlier generation of the same model. How much of the
truth does it still learn?
"""

from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, part, structure
from orderparam.kernels.gram import checked_gram
from orderparam.kernels.spectrum import Spectrum


class ModelChain(System):
    r"""A chain of ridge regressions. The first regression learns the truth, and each later one
    learns from the labels of the regression before it.

    Features are $x \sim N(0, \mathrm{diag}(\lambda_k))$. In a generation with n examples and ridge
    $T$ the weights are $b = X^T (X X^T + T)^{-1} y$. The first generation (the teacher) sees $y =
    \beta \cdot x + \sqrt{s_1}\, \xi$; every later generation sees new inputs with labels $y =
    \omega (\beta \cdot x + \sqrt{s_1}\, \xi) + (1 - \omega)(b_{g-1} \cdot x + \sqrt{s}\, \xi')$, a
    mixture of the truth, with weight $\omega$ = `truth_share`, and of the previous model.

    Conventions: `spectrum.target_power` is $\lambda_k \beta_k^2$, summed over a level; the ridge T
    is added to the Gram matrix, as in kernel regression. Errors are mean squared deviations from
    the noiseless truth, without a factor 1/2. In tests the features may have other variances,
    `test_eigenvalues`, which is a covariate shift. Spectra with a tail or with eigenvalues of 0 are
    refused.
    """

    spectrum: Spectrum = part("covariance of the features, with the truth's power on it")
    test_eigenvalues: Float[Array, "level"] | None = parameter(
        "variances of the features in tests; None: those of training", minimum=0, default=None
    )

    n_train: float = parameter(
        "examples n of every generation; need not be an integer", minimum=1, kw_only=True
    )
    ridge: float = parameter("ridge T, added to the Gram matrix", minimum=0, kw_only=True)
    noise: float = parameter(
        "variance s of the noise on a model's labels", minimum=0, default=0.0, kw_only=True
    )
    teacher_n_train: float | None = parameter(
        "examples of the first generation; None: n_train", minimum=1, default=None, kw_only=True
    )
    teacher_ridge: float | None = parameter(
        "ridge of the first generation; None: ridge", minimum=0, default=None, kw_only=True
    )
    teacher_noise: float | None = parameter(
        "variance s_1 of the noise on true labels; None: noise",
        minimum=0,
        default=None,
        kw_only=True,
    )
    truth_share: float = parameter(
        "weight omega of true labels in those of later generations", default=0.0, kw_only=True
    )
    generations: int = structure("number of generations", minimum=1, default=2, kw_only=True)

    def __check_init__(self) -> None:
        if _any(self.spectrum.tail > 0) or _any(self.spectrum.tail_power > 0):
            raise ValueError("ModelChain.spectrum has a tail: give all modes as levels")
        if _any(self.spectrum.eigenvalues <= 0):
            raise ValueError("ModelChain.spectrum has eigenvalues that are 0: leave them out")
        given, levels = self.test_eigenvalues, len(self.spectrum.eigenvalues)
        if given is not None and len(given) != levels:
            raise ValueError(
                f"ModelChain.test_eigenvalues has {len(given)} entries: must have {levels}, one "
                "for each level of the spectrum"
            )

    @property
    def teacher(self) -> tuple[Any, Any, Any]:
        """Number of examples, ridge and noise variance of the first generation."""
        own = (self.teacher_n_train, self.teacher_ridge, self.teacher_noise)
        later = (self.n_train, self.ridge, self.noise)
        one, two, three = (after if first is None else first for first, after in zip(own, later))
        return one, two, three

    def counts(self) -> tuple[int, int]:
        """Numbers of examples of the first and of the later generations in an experiment.

        Raises:
            ValueError: if they are not whole numbers.
        """
        numbers = {"teacher_n_train": self.teacher[0], "n_train": self.n_train}
        for name, value in numbers.items():
            if float(value) != round(float(value)):
                raise ValueError(f"{name} = {float(value):g}: must be a whole number, to draw")
        first, later = (round(float(value)) for value in numbers.values())
        return first, later

    @property
    def test_ratio(self) -> Any:
        if self.test_eigenvalues is None:
            return 1.0
        return self.test_eigenvalues / self.spectrum.eigenvalues


class PoolChain(ModelChain):
    r"""A chain of kernel regressions on inputs drawn from a finite pool, with replacement.

    The equations are those of `ModelChain`, for the features of a kernel on M inputs, $K/M = U\,
    \mathrm{diag}(\lambda)\, U^T$, $x_{ik} = \sqrt{M \lambda_k}\, U_{ik}$. Such a chain is made by
    `from_kernel`. The theory treats the features as Gaussian.
    """

    features: Float[Array, "pool level"] = parameter("the features of all inputs", kw_only=True)
    coefficients: Float[Array, "level"] = parameter("the truth's weight beta", kw_only=True)

    def __check_init__(self) -> None:
        levels = len(self.spectrum.eigenvalues)
        if self.features.shape[1] != levels or len(self.coefficients) != levels:
            raise ValueError(
                f"PoolChain.features has shape {self.features.shape}: must have {levels} columns, "
                "one for each level of the spectrum and entry of coefficients"
            )

    @classmethod
    def from_kernel(cls, kernel: Any, targets: Any, **numbers: Any) -> Self:
        """The chain on a pool of inputs with this kernel matrix. The truth is the component of the
        targets in the range of the kernel (eigenvalues above 1e-10 of the largest).

        Raises:
            ValueError: if the kernel is not a Gram matrix with one row for each target.
        """
        gram, labels = checked_gram(kernel, targets, outputs=False)
        size = len(labels)
        eigenvalues, vectors = jnp.linalg.eigh(gram / size)
        kept = np.asarray(eigenvalues > 1e-10 * eigenvalues[-1])
        eigenvalues, vectors = eigenvalues[kept][::-1], vectors[:, kept][:, ::-1]
        amplitudes = vectors.T @ labels / jnp.sqrt(size)
        return cls(
            Spectrum(eigenvalues, amplitudes**2),
            features=jnp.sqrt(size * eigenvalues) * vectors,
            coefficients=amplitudes / jnp.sqrt(eigenvalues),
            **numbers,
        )


class ShiftedPool(PoolChain):
    r"""Kernel regression on inputs drawn with replacement from a pool, tested on other inputs, or
    on the inputs of the pool with other weights.

    A test law is a distribution $w_q$ over new inputs $q$. The new inputs may be other images, for
    example images with noise, or the images of the pool with another balance of classes. The
    features of `PoolChain` are extended to them by $x_k(q) = \sum_i K(q, i)\, x_{ik} / (M
    \lambda_k)$, which gives the same predictions as the kernel. `from_kernels` builds the system
    from kernel matrices. Only the first generation of the chain is trained; `generations`,
    `truth_share` and `test_eigenvalues` are not used.
    """

    new_features: Float[Array, "new level"] = parameter("features of the new inputs", kw_only=True)
    new_targets: Float[Array, "new"] = parameter("targets of the new inputs", kw_only=True)
    laws: Float[Array, "law new"] = parameter(
        "weight of every new input in every test law", minimum=0, kw_only=True
    )

    def __check_init__(self) -> None:
        if _any(abs(self.laws.sum(axis=1) - 1) > 1e-8):
            raise ValueError("ShiftedPool.laws: the weights of every law must sum to 1")

    @classmethod
    def from_kernels(
        cls, kernel: Any, beside: Any, targets: Any, new_targets: Any, laws: Any, **numbers: Any
    ) -> Self:
        """The regression on a pool with this kernel matrix and targets.

        Args:
            kernel: the kernel matrix of the pool.
            beside: the kernel between new inputs (rows) and the pool (columns).
            targets: targets of the pool.
            new_targets: targets of the new inputs.
            laws: weights of the new inputs, a row for every law.
            numbers: other fields.

        Raises:
            ValueError: if the kernel is not a Gram matrix with one row for each target, or an array
                does not fit.
        """
        pool = PoolChain.from_kernel(kernel, targets, **numbers)
        try:
            across = np.asarray(beside, float)
        except (TypeError, ValueError, OverflowError):
            raise ValueError("beside must be an array of numbers") from None
        if across.ndim != 2 or across.shape[1] != len(pool.features):
            raise ValueError(
                f"beside has shape {across.shape}: must have {len(pool.features)} columns, one for "
                "each input of the pool"
            )
        if not np.isfinite(across).all():
            raise ValueError("beside contains NaN or infinity")
        size = len(pool.features) * pool.spectrum.eigenvalues
        return cls(
            pool.spectrum,
            features=pool.features,
            coefficients=pool.coefficients,
            new_features=across @ pool.features / size,
            new_targets=new_targets,
            laws=laws,
            **numbers,
        )


def _any(condition: Any) -> bool:
    """True if a condition holds anywhere; False for traced values, whose numbers are unknown."""
    return not isinstance(condition, jax.core.Tracer) and bool(np.any(condition))
