"""Gradient flow of an infinitely wide network: the mean and covariance over random initialisations
at every training time.

Full-batch gradient flow d theta/dt = -grad L on L = (1/2) sum (f(x_mu) - y_mu)^2, with learning
rate one (a rate eta rescales t to eta t). In the infinite-width limit the tangent kernel Theta
stays at its initial value, and (Lee et al. 2019, eqs. 14-16)

    A_t      = Theta(X, X)^{-1} (1 - exp(-Theta(X, X) t))
    mean_t   = Theta(x, X) A_t y
    cov_t    = K(x, x') + Theta(x, X) A_t K(X, X) A_t Theta(X, x')
               - [Theta(x, X) A_t K(X, x') + (x <-> x')]

over networks started from the prior (the Gaussian process K). At t -> infinity this is not the
posterior of K.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from orderparam.core.result import Result
from orderparam.core.system import is_number


class FlowPrediction(Result):
    """Ensemble of networks trained for a time t.

    mean, covariance: of f at the test points, over initialisations. fitted: mean of f at the
    training points.
    """

    mean: Float[Array, "test"]
    covariance: Float[Array, "test test"]
    fitted: Float[Array, "train"]


def gradient_flow(
    ntk_train: Float[Array, "train train"],
    ntk_cross: Float[Array, "test train"],
    nngp_train: Float[Array, "train train"],
    nngp_cross: Float[Array, "test train"],
    nngp_test: Float[Array, "test test"],
    targets: Float[Array, "train"],
    time: Num[Array, ""] | float,
) -> FlowPrediction:
    """Mean and covariance over initialisations after training for `time` (may be infinite if
    ntk_train is invertible).

    `jax.vmap` over `time` gives a whole trajectory from one eigendecomposition.
    Raises `ValueError` for shapes that do not fit and for a negative time.
    """
    n, tests = jnp.shape(ntk_train)[0], jnp.shape(ntk_cross)[0]
    expected: dict[str, tuple[int, ...]] = {
        "ntk_train": (n, n),
        "ntk_cross": (tests, n),
        "nngp_train": (n, n),
    }
    expected |= {"nngp_cross": (tests, n), "nngp_test": (tests, tests), "targets": (n,)}
    given = (ntk_train, ntk_cross, nngp_train, nngp_cross, nngp_test, targets)
    for (name, shape), array in zip(expected.items(), given):
        if jnp.shape(array) != shape:
            raise ValueError(f"{name} has shape {jnp.shape(array)}: must be {shape}")
    if is_number(time) and not float(time) >= 0:
        raise ValueError(f"time = {time}: must be >= 0")
    return _flow(*(jnp.asarray(array, float) for array in given), jnp.asarray(time, float))


@jax.jit
def _flow(
    ntk_train: Array,
    ntk_cross: Array,
    nngp_train: Array,
    nngp_cross: Array,
    nngp_test: Array,
    targets: Array,
    time: Array,
) -> FlowPrediction:
    rates, modes = jnp.linalg.eigh(ntk_train, symmetrize_input=False)
    trained = _trained(rates, time)
    # Theta(x, X) A_t, the response of f(x) to the initial residuals of the training points
    response = ((ntk_cross @ modes) * trained) @ modes.T
    mixed = response @ nngp_cross.T
    return FlowPrediction(
        mean=response @ targets,
        covariance=nngp_test + response @ nngp_train @ response.T - mixed - mixed.T,
        fitted=modes @ (rates * trained * (modes.T @ targets)),
    )


def _trained(rates: Float[Array, "train"], time: Num[Array, ""] | float) -> Float[Array, "train"]:
    """(1 - exp(-rate t)) / rate, which tends to t for rate -> 0."""
    still = rates == 0
    safe = jnp.where(still, 1.0, rates)
    return jnp.where(still, time, -jnp.expm1(-safe * time) / safe)
