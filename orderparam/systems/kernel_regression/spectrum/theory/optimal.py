"""The temperature (ridge) at which kernel regression generalises best."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import at_threshold, effective_ridge
from orderparam.solve.root import decreasing_root
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression
from orderparam.systems.kernel_regression.spectrum.theory.self_consistent import from_ridge

# Points at which the error is looked up before the best is refined: it may have several minima in T.
_SCAN = 256


class OptimalTemperature(Result):
    """The best temperature, the test error there, and |d test_error / d log kappa| as the residual."""

    temperature: Float[Array, ""]
    test_error: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def optimal_temperature(system: KernelRegression) -> OptimalTemperature:
    """argmin of the self-consistent test error over T >= 0; the temperature of `system` is not used.

    The ridge enters only through kappa, and T = kappa (P - sum_k m_k L_k) - tail is the ridge that leads to a kappa. The error
    is therefore minimised over log kappa, where it is explicit: a scan from kappa(T = 0) upwards, then Newton's method on
    its derivative. T = 0 when the error increases from there. `converged` is False when the error decreases without bound in T (a
    target that cannot be learned). Derivatives of the optimum follow from the implicit function theorem.
    """
    spectrum, n_train = system.spectrum, system.n_train
    eigenvalues, multiplicities = spectrum.eigenvalues, spectrum.multiplicities
    smallest = jnp.min(jnp.where(eigenvalues > 0, eigenvalues, jnp.inf))
    largest = jnp.max(eigenvalues)
    ridgeless = effective_ridge(spectrum, n_train, 0.0).threshold
    # For kappa far above all eigenvalues E = (Y + s2)(1 + a/kappa^2) - 2 b/kappa is smallest at kappa = (Y + s2) a/b.
    variance = (spectrum.total_power + system.noise) * (multiplicities @ eigenvalues**2) / n_train
    signal = eigenvalues @ spectrum.target_power
    far = jnp.where(signal > 0, variance / jnp.where(signal > 0, signal, 1.0), 0.0)
    lower = jnp.log(jnp.maximum(ridgeless, 1e-6 * smallest))
    upper = jnp.log(100 * jnp.maximum(jnp.maximum(largest, far), ridgeless))
    grid = jax.lax.stop_gradient(jnp.linspace(lower, upper, _SCAN))

    def error(log_threshold: Float[Array, ""], system: KernelRegression) -> Float[Array, ""]:
        return from_ridge(system, at_threshold(system.spectrum, system.n_train, jnp.exp(log_threshold))).test_error

    def downhill(log_threshold: Float[Array, ""], system: KernelRegression) -> Float[Array, ""]:
        return -jax.grad(error)(log_threshold, system)

    best = jnp.argmin(jax.lax.map(lambda u: error(u, system), grid, batch_size=16))
    at_zero = (best == 0) & (downhill(grid[0], system) <= 0)
    left, right = grid[jnp.maximum(best - 1, 0)], grid[jnp.minimum(best + 1, _SCAN - 1)]
    root = decreasing_root(downhill, left, right, system)

    threshold = jnp.where(at_zero, ridgeless, jnp.exp(root.value))
    solved = at_threshold(spectrum, n_train, threshold)
    temperature = jnp.where(at_zero, 0.0, jnp.maximum(threshold * solved.unused - spectrum.tail, 0.0))
    return OptimalTemperature(
        temperature=temperature,
        test_error=from_ridge(system, effective_ridge(spectrum, n_train, temperature)).test_error,
        residual=jnp.where(at_zero, 0.0, root.residual),
        converged=at_zero | (root.converged & (best < _SCAN - 1)),
    )
