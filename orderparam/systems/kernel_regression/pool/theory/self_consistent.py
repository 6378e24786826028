"""The self-consistent theory for subsets of a finite pool, with all its points alike. Derived for this package."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import effective_ridge, learnability, ratio
from orderparam.solve.root import decreasing_root
from orderparam.systems.kernel_regression.learning_curve import LearningCurve, clean_train_error
from orderparam.systems.kernel_regression.pool.model import PoolRegression


@theory
def self_consistent_on_pool(system: PoolRegression) -> LearningCurve:
    """The self-consistent theory for subsets of a pool drawn without replacement, with all points alike.

    With p = P/M, D = sum_k m_k L_k, L_k = lambda_k / (lambda_k + kappa) and gamma = (1/P) sum_k m_k L_k^2,

        P = P T/R + D,   kappa = (p T + (1-p) R) / P,   z = 1 - p D/P,   q = (1-p) (gamma - p (D/P)^2) / z^2
        test_error e = [B / z^2 + s2 q/(1-p)] / (1 - q),   train_error = (T/R)^2 (e + s2)

    where R = T + V is the effective ridge and V the posterior variance outside the training set. It is the average of `cavity`
    over a pool whose points are all equivalent, at the cost of `self_consistent`, to which it reduces for p -> 0, and with
    which it agrees for any p at T = 0. Derived for this package, not in the cited papers.
    """
    spectrum, n_train, temperature, noise = system.spectrum, system.n_train, system.temperature, system.noise
    fraction = system.sampled_fraction
    infinite = effective_ridge(spectrum, n_train, temperature)
    determined = infinite.threshold <= 0  # no ridge, and the data fix every mode: R = 0

    def excess(log_ridge: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, n_train, temperature, fraction = args
        ridge = jnp.exp(log_ridge)
        threshold = (fraction * temperature + (1 - fraction) * ridge) / n_train
        dimension = spectrum.multiplicities @ learnability(spectrum.eigenvalues, threshold) + spectrum.tail / threshold
        return jnp.log(temperature * jnp.exp(-log_ridge) + dimension / n_train)

    # P kappa of the infinite population bounds R from below, and (p T + (1-p) R) from above.
    lower = jnp.where(determined, 1.0, n_train * infinite.threshold)
    upper = jnp.where(determined, 1.0, (lower - fraction * temperature) / (1 - fraction))
    root = decreasing_root(excess, jnp.log(lower) - 1e-6, jnp.log(upper) + 1e-6, (spectrum, n_train, temperature, fraction))
    ridge = jnp.where(determined, 0.0, jnp.exp(root.value))

    threshold = (fraction * temperature + (1 - fraction) * ridge) / n_train
    learned = learnability(spectrum.eigenvalues, threshold)
    dimension = spectrum.multiplicities @ learned + ratio(spectrum.tail, threshold)
    shrinkage = 1 - dimension / n_train  # T/R
    z = 1 - fraction * dimension / n_train
    spread = spectrum.multiplicities @ learned**2 / n_train
    q = (1 - fraction) * (spread - fraction * (dimension / n_train) ** 2) / z**2
    bias = (1 - learned) ** 2 @ spectrum.target_power + spectrum.tail_power
    error = ratio(bias / z**2 + noise * q / (1 - fraction), 1 - q)
    population_error = held_in(error, shrinkage, noise, fraction)
    return LearningCurve(
        test_error=error,
        population_error=population_error,
        train_error=shrinkage**2 * (error + noise),
        bias=bias,
        variance=population_error - bias,
        posterior_variance=(1 - fraction + fraction * shrinkage) * (ridge - temperature),
        effective_ridge=ridge,
        effective_dimension=dimension,
        target_learnability=ratio(learned @ spectrum.target_power, spectrum.total_power),
        squared_discrepancy=ratio(error + noise, ridge**2),
        residual=jnp.where(determined, 0.0, root.residual),
        converged=jnp.where(determined, True, root.converged),
    )


def held_in(
    error: Float[Array, "*pool"], shrinkage: Float[Array, "*pool"], noise: float | Float[Array, ""], fraction: Float[Array, ""]
) -> Float[Array, "*pool"]:
    """Error over all points, from that outside the training set, to which a share p of the points belongs."""
    return (1 - fraction) * error + fraction * clean_train_error(shrinkage, error, noise)
