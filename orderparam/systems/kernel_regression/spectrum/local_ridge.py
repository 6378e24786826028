"""The self-consistent theory of a ridge and a label noise that depend on the input. Derived for
this package."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import learnability, ratio
from orderparam.solve.root import decreasing_root
from orderparam.systems.kernel_regression.learning_curve import LearningCurve, shrunk
from orderparam.systems.kernel_regression.spectrum.model import HeteroscedasticRegression


@theory
def heteroscedastic(system: HeteroscedasticRegression) -> LearningCurve:
    r"""Learning curve with a ridge T(x) and a label noise s(x) that are independent of the
    learnable features.

    $$ \frac1\kappa = P\, E_x \frac{1}{T(x) + V}, \qquad V = \kappa \sum_k m_k L_k, \qquad
       L_k = \frac{\lambda_k}{\lambda_k + \kappa} $$

    $$ E = \frac{B + A S_n}{1 - A S}, \qquad A = \kappa^2 \sum_k m_k L_k^2, \qquad
       S = P E_x \frac{1}{(T(x) + V)^2}, \qquad S_n = P E_x \frac{s(x)}{(T(x) + V)^2} $$

    $$ E_{\mathrm{train}} = E_x \Big( \frac{T(x)}{T(x) + V} \Big)^2 (E + s(x)) $$

    with $B = \sum_k (1 - L_k)^2 Y_k$ and P = `n_train`. T(x) and s(x) are the ridge and the label
    noise of the region of x. E is `test_error` and `population_error`, V is `posterior_variance`,
    and `effective_ridge` is $P\kappa$, the harmonic mean of T(x) + V. For constant T(x) and s(x)
    this is `self_consistent`.

    Accuracy: the equation is solved to rounding; the theory is exact for Gaussian features and many
    examples in every region.

    Source: derived here.

    >>> from orderparam.kernels import finite_rank
    >>> curve = heteroscedastic(
    ...     HeteroscedasticRegression(
    ...         finite_rank(20, 0.05), 30, 0.0, weights=[0.5, 0.5], extra_temperature=[0.01, 1.0],
    ...         extra_noise=[0.0, 0.0],
    ...     )
    ... )
    >>> round(float(curve.test_error), 6)
    0.100943
    """
    spectrum, n_train = system.spectrum, system.n_train
    weights = system.weights
    # The ridge of a region; the tail of the spectrum adds to it everywhere.
    bare = system.temperature + system.extra_temperature
    noise = system.noise + system.extra_noise
    ridge = bare + spectrum.tail
    rank = spectrum.rank

    # If there are more samples without a ridge than modes, these samples determine all modes, and
    # kappa is 0.
    free = n_train * jnp.sum(jnp.where(ridge > 0, 0.0, weights))
    determined = free >= rank
    solved_ridge = jnp.where(determined, 1.0, ridge)

    def excess(log_threshold: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, ridge, weights, n_train = args
        threshold = jnp.exp(log_threshold)
        dimension = spectrum.multiplicities @ learnability(spectrum.eigenvalues, threshold)
        return -jnp.log(weights @ (n_train / (ridge * jnp.exp(-log_threshold) + dimension)))

    # Lower bound of kappa in 1 = P E[1/(T/kappa + sum m L)]. The samples without a ridge contribute
    # at least free/rank to the right-hand side. Below the bound, the samples with a ridge and the
    # factors L < 1 each add less than half of what is missing to 1.
    taken = jnp.where(determined, 0.0, ratio(free, rank))
    smallest = jnp.min(jnp.where(spectrum.eigenvalues > 0, spectrum.eigenvalues, jnp.inf))
    inverse = n_train * jnp.sum(
        jnp.where(solved_ridge > 0, weights / jnp.where(solved_ridge > 0, solved_ridge, 1.0), 0.0)
    )
    lower = 0.5 * (1 - taken) * jnp.minimum(ratio(1.0, inverse), ratio(smallest, taken))
    upper = (spectrum.eigenvalues @ spectrum.multiplicities + jnp.max(solved_ridge)) / n_train
    root = decreasing_root(
        excess, jnp.log(lower), jnp.log(upper) + 1e-6, (spectrum, solved_ridge, weights, n_train)
    )

    threshold = jnp.where(determined, 0.0, jnp.exp(root.value))
    safe_threshold = jnp.where(determined, 1.0, threshold)
    learned = learnability(spectrum.eigenvalues, threshold)
    dimension = spectrum.multiplicities @ learned
    # T(x)/kappa. If kappa = 0 it is infinite for inputs with a ridge (`ridged`), whose averages are
    # computed separately.
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
    # Squared discrepancy E_x (E + s(x))/(T(x) + V)^2. E is divided by kappa^2 mode by mode, because
    # both may vanish together.
    divided = jnp.sum(
        ratio(spectrum.target_power, (spectrum.eigenvalues + threshold) ** 2)
    ) + ratio(spectrum.tail_power, threshold**2)
    discrepancy = ratio(divided + enlarging * n_train * ratio(heard, threshold**2), complement) * (
        weights @ share**2
    )
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
