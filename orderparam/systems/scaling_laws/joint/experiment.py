"""Ridge regression on drawn random features of a scale-free problem."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.needs import at_most
from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.kernels.feature_equivalent import gaussian_features
from orderparam.systems.scaling_laws.joint.model import ScaleFree
from orderparam.systems.scaling_laws.joint.theory import optimal_ridge

_LARGEST = 100_000  # largest number of modes


class MeasuredError(Result):
    """Test error of one training set and one draw of the features.

    Fields:
        test_error: E (f - f*)^2, exact over inputs (no factor 1/2, without label noise).
    """

    test_error: Float[Array, ""]


@experiment(needs={"modes": at_most(_LARGEST)})
def drawn_regression(
    system: ScaleFree, key: PRNGKeyArray, *, penalty: Literal["given", "best"] = "given"
) -> MeasuredError:
    r"""Test error of ridge regression on random features, for one draw of Gaussian modes and of
    features.

    $$ \min_w \sum_{\mu=1}^P \Big( y_\mu - \frac{w \cdot \phi(x_\mu)}{\sqrt N} \Big)^2
       + \text{ridge}\, |w|^2 , \qquad
       \phi_i(x) = \sum_k \sqrt{\lambda_k}\, \psi_k(x)\, \chi_{ki} $$

    with independent standard Gaussian $\psi_k(x)$ and $\chi_{ki}$.

    Args:
        penalty: "given" (the default) uses the ridge of the system, "best" the result of
            `optimal_ridge`.

    Raises:
        ValueError: for more than 100,000 modes.

    Cost: memory for (P + N) times the number of modes, and time proportional to the cube of the
    smaller of P and N.

    Source: Defilippis, Loureiro, Misiakiewicz (2024).

    >>> import jax
    >>> from orderparam.systems.scaling_laws import ScaleFreeFeatures
    >>> run = drawn_regression(ScaleFreeFeatures(50, 20, modes=200, ridge=0.1), jax.random.key(0))
    >>> bool(0 < run.test_error < 1)
    True
    """
    k = jnp.arange(1.0, system.size("modes") + 1)
    eigenvalues, power = k**-system.spectral_decay, k**-system.target_decay
    ridge = system.ridge if penalty == "given" else optimal_ridge(system).ridge
    return MeasuredError(
        test_error=gaussian_features(
            eigenvalues, power, *system.drawn_sizes, ridge, system.noise, key
        )[0]
    )
