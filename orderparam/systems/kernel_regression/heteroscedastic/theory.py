"""The self-consistent theory of a ridge and a label noise that depend on the input. Derived for this package."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import learnability, ratio
from orderparam.solve.root import decreasing_root
from orderparam.systems.kernel_regression.heteroscedastic.model import HeteroscedasticRegression
from orderparam.systems.kernel_regression.learning_curve import LearningCurve, shrunk


@theory
def heteroscedastic(system: HeteroscedasticRegression) -> LearningCurve:
    """Self-consistent theory with ridge T(x) and label noise s2(x) that are independent of the learnable features.

        1/kappa = P E_x[1 / (T(x) + V)],   V = kappa sum_k m_k L_k,   L_k = lambda_k / (lambda_k + kappa)
        A = kappa^2 sum_k m_k L_k^2,   S = P E_x[1 / (T(x) + V)^2],   S_n = P E_x[s2(x) / (T(x) + V)^2]
        population_error = (B + A S_n) / (1 - A S),   train_error = E_x[(T(x) / (T(x) + V))^2 (population_error + s2(x))]

    with B = sum_k (1 - L_k)^2 Y_k; for a constant T(x) this is `self_consistent`. `effective_ridge` is P kappa, the harmonic
    mean of T(x) + V. Derived for this package, not in the cited papers.
    """
    spectrum, n_train = system.spectrum, system.n_train
    weights = system.weights
    bare = system.temperature + system.extra_temperature
    noise = system.noise + system.extra_noise
    ridge = bare + spectrum.tail
    rank = spectrum.rank

    # Samples without any ridge determine all modes if they outnumber them: then kappa = 0.
    free = n_train * jnp.sum(jnp.where(ridge > 0, 0.0, weights))
    determined = free >= rank
    solved_ridge = jnp.where(determined, 1.0, ridge)

    def excess(log_threshold: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, ridge, weights, n_train = args
        threshold = jnp.exp(log_threshold)
        dimension = spectrum.multiplicities @ learnability(spectrum.eigenvalues, threshold)
        return -jnp.log(weights @ (n_train / (ridge * jnp.exp(-log_threshold) + dimension)))

    # At the lower end the samples with a ridge and the spread of the eigenvalues each take at most half of the room that the
    # samples without a ridge leave in 1 = P E[1 / (T/kappa + sum m L)].
    taken = jnp.where(determined, 0.0, ratio(free, rank))
    smallest = jnp.min(jnp.where(spectrum.eigenvalues > 0, spectrum.eigenvalues, jnp.inf))
    inverse = n_train * jnp.sum(jnp.where(solved_ridge > 0, weights / jnp.where(solved_ridge > 0, solved_ridge, 1.0), 0.0))
    lower = 0.5 * (1 - taken) * jnp.minimum(ratio(1.0, inverse), ratio(smallest, taken))
    upper = (spectrum.eigenvalues @ spectrum.multiplicities + jnp.max(solved_ridge)) / n_train
    root = decreasing_root(excess, jnp.log(lower), jnp.log(upper) + 1e-6, (spectrum, solved_ridge, weights, n_train))

    threshold = jnp.where(determined, 0.0, jnp.exp(root.value))
    safe_threshold = jnp.where(determined, 1.0, threshold)
    learned = learnability(spectrum.eigenvalues, threshold)
    dimension = spectrum.multiplicities @ learned
    # T(x)/kappa. Where kappa = 0 it is infinite for inputs with a ridge, which are treated apart.
    unused = jnp.where(determined, free - rank, ridge / safe_threshold)
    ridged = determined & (ridge > 0)
    share = jnp.where(ridged, 0.0, 1 / (unused + dimension))  # kappa / (T(x) + V)
    shrinkage = jnp.where(determined, 1 - dimension * share, bare / safe_threshold * share)

    bias = (1 - learned) ** 2 @ spectrum.target_power + spectrum.tail_power
    enlarging = spectrum.multiplicities @ learned**2
    left_over = unused + spectrum.multiplicities @ (learned * (1 - learned))
    # 1 - A S = P E[u (1 - u sum m L^2)] with u = kappa/(T + V), because P E[u] = 1.
    complement = n_train * (weights @ (share * jnp.where(ridged, 1.0, left_over * share)))
    heard = weights @ (noise * share**2)
    error = ratio(bias + enlarging * n_train * heard, complement)
    # E_x (error + s2) / (T + V)^2, the error divided by kappa^2 mode by mode: both may vanish together.
    divided = jnp.sum(ratio(spectrum.target_power, (spectrum.eigenvalues + threshold) ** 2)) + ratio(
        spectrum.tail_power, threshold**2
    )
    discrepancy = ratio(divided + enlarging * n_train * ratio(heard, threshold**2), complement) * (weights @ share**2)
    held = jnp.where(ridged, (error + noise) / jnp.where(ridged, ridge, 1.0) ** 2, 0.0)
    tail = ratio(spectrum.tail, threshold)
    return LearningCurve(
        test_error=error,
        population_error=error,
        train_error=weights @ shrunk(shrinkage, error + noise),
        bias=bias,
        variance=error - bias,
        posterior_variance=threshold * dimension + spectrum.tail,
        effective_ridge=n_train * threshold,
        effective_dimension=dimension + tail,
        target_learnability=ratio(learned @ spectrum.target_power, spectrum.total_power),
        squared_discrepancy=discrepancy + ratio(heard, threshold**2) + weights @ held,
        residual=jnp.where(determined, 0.0, root.residual),
        converged=jnp.where(determined, True, root.converged),
    )
