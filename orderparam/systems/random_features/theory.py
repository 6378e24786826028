"""Asymptotics of convex learning with Gaussian features, for n and p large in proportion. The order
parameters V, m, q and their conjugates Vh, mh, qh solve

    D_i = ridge + Vh omega_i
    V = (1/p) sum omega/D        Vh = -(n/p) E dg/dw
    m = mh sum s^2/D             mh = (n/p) E sum_y (dZ/dM) g
    q = qh (1/p) sum omega^2/D^2 + mh^2 sum s^2 omega/D^2,        qh = (n/p) E g^2

with the averages of `orderparam.losses.Channel` (Gerace, Loureiro, Krzakala, Mézard, Zdeborová
2020; Loureiro, Gerbelot, Cui, Goldt, Krzakala, Mézard, Zdeborová 2021). Random features of Gaussian
inputs have the spectrum of their Gaussian equivalent (Mei, Montanari 2019; Goldt et al. 2020; Hu,
Lu 2020).
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import optimistix
from jaxtyping import Array, Bool, Float

from orderparam.core.system import nearest
from orderparam.core.verb import theory
from orderparam.losses import ClassLabels, Fields, SignLabels, Square
from orderparam.losses.fitted import FittedErrors
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.root import decreasing_root
from orderparam.solve.solved import Solved
from orderparam.systems.random_features.model import FeatureRegression, FeatureSpectrum

# ------------------------------------------------------------------------------------------------
# Results, whose fields have the same names in the theories and the experiments of a fixed feature
# map.


class Minimiser(FittedErrors):
    """Observables that theories and experiments of the minimiser share.

    Fields:
        effective_dimension: tr F (F^T H F + ridge)^-1 F^T H with H = diag l'': effective number of
            parameters; for the hinge loss the number of examples on the margin.
        cross_validation: estimate of test_error from training errors alone; for the square loss
            generalised cross-validation, train_error / (1 - effective_dimension / n)^2.
        residual: residual of the equations of a theory, or of the minimisation in an experiment.
        converged: whether these were solved.
    """

    effective_dimension: Float[Array, ""]
    cross_validation: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class FeatureCurve(Minimiser):
    """Errors and order parameters of the minimiser in a theory.

    Fields:
        response: V, the derivative of the prediction at a new example with respect to its label,
            when that example is added to the training set.
        effective_ridge: nu with sum_i omega_i / (omega_i + nu) = effective_dimension.
    """

    response: Float[Array, ""]
    effective_ridge: Float[Array, ""]


Scalar = Float[Array, ""]


@theory
def asymptotics(system: FeatureRegression) -> FeatureCurve:
    r"""Errors and order parameters of the minimiser for n, p (and d) large in proportion.

    With eigenvalues $\omega_i$ of the features' covariance, projections $s_i$ of the teacher's
    field and $D_i = \lambda + \hat V \omega_i$,

    $$ V = \frac1p \sum_i \frac{\omega_i}{D_i} , \quad
       q = \frac{\hat q}{p} \sum_i \frac{\omega_i^2}{D_i^2}
       + \hat m^2 \sum_i \frac{s_i^2 \omega_i}{D_i^2} , \quad
       m = \hat m \sum_i \frac{s_i^2}{D_i} , $$

    $$ \hat V = -\frac np E\, \partial_w g , \qquad \hat q = \frac np E\, g^2 , \qquad
       \hat m = \frac np E \sum_y \partial_M Z\, g , $$

    with $g = -\ell'(y, \mathrm{prox})$, $V$ = `response`, $q$ = `self_overlap`, $m$ =
    `teacher_overlap` and $\lambda$ = `ridge`. For the square loss $g = (y - w)/(1 + V)$, so that a
    single equation for $V$ remains, and $q$ and $m$ are explicit. For other losses the equations
    are iterated. The minimisation is convex, so that there is one fixed point.

    Accuracy: 1e-8 for the square loss; for other losses the fixed point is found to 1e-11.
    Corrections at finite size are a few times 1/d. Close to the separability threshold at vanishing
    ridge `converged` may be False.

    Source: Gerace, Loureiro, Krzakala, Mézard, Zdeborová (2020); Loureiro, Gerbelot et al. (2021);
    for the square loss Mei, Montanari (2019).

    >>> from orderparam.systems.random_features import RandomFeatures
    >>> system = RandomFeatures(200, 400, n_train=300, ridge=0.01)
    >>> curve = asymptotics(system)
    >>> round(float(curve.test_error), 5), round(float(curve.effective_dimension), 2)
    (0.24769, 246.13)
    """
    return _ridge(system) if isinstance(system.loss, Square) else iterate(system)


def ridge_response(
    spectrum: FeatureSpectrum, ridge: Scalar | float, load: Scalar | float
) -> Solved:
    """Logarithm of the response V of least squares with load = n/p. V solves one monotone equation,
    V = (1/p) sum omega / (ridge + load omega / (1 + V))."""

    def excess(log_response: Scalar, args: tuple) -> Scalar:
        spectrum, ridge, load = args
        stiffness = load / (1 + jnp.exp(log_response))
        return jnp.log(spectrum.averages(ridge, stiffness).response) - log_response

    # The right-hand side increases with V, from V = 0 (stiffness = load) to V = infinity (stiffness
    # = 0).
    lower = jnp.log(spectrum.averages(ridge, load).response)
    upper = jnp.log(spectrum.mean_eigenvalue / ridge)
    return decreasing_root(excess, lower - 1e-6, upper + 1e-6, (spectrum, ridge, load))


def _ridge(system: FeatureRegression) -> FeatureCurve:
    """The result for least squares: V solves a single equation, m is explicit, and q solves a
    linear equation."""
    spectrum, ridge, load = _problem(system)
    root = ridge_response(spectrum, ridge, load)
    response = jnp.exp(root.value)
    labels = system.labels.moments(0.0, system.teacher_power)
    stiffness = load / (1 + response)
    pull = labels.slope * stiffness
    averages = spectrum.averages(ridge, stiffness)
    m = pull * averages.overlap
    power = labels.power - jnp.where(jnp.asarray(system.fits_mean), labels.mean**2, 0.0)
    spread = stiffness**2 / load * averages.power  # df_2 / n
    # 1 - df_2 / n, without cancellation
    rest = 1 / (1 + response) + stiffness * ridge / load * averages.weight_power
    q = (spread * (power - 2 * labels.slope * m) + pull**2 * averages.signal) / rest
    return _curve(system, response, q, m, root.residual, root.converged)


@theory
def state_evolution(system: FeatureRegression) -> FeatureCurve:
    r"""Errors and order parameters of the minimiser for any loss, by iteration of state evolution.

    The equations and the result are the same as those of `asymptotics`. For the square loss
    `asymptotics` solves the single equation

    $$ V = \frac1p \sum_i \frac{\omega_i}{\lambda + \frac np \frac{\omega_i}{1 + V}} $$

    instead of iterating.

    Accuracy: the fixed point is found to 1e-11.

    Source: Gerace, Loureiro, Krzakala, Mézard, Zdeborová (2020); Loureiro, Gerbelot et al. (2021).

    >>> from orderparam.systems.random_features import RandomFeatures
    >>> system = RandomFeatures(200, 400, n_train=300, ridge=0.01)
    >>> round(float(state_evolution(system).test_error), 5)
    0.24769
    """
    return iterate(system)


def iterate(
    system: FeatureRegression, tolerance: float = 1e-11, max_steps: int = 3000
) -> FeatureCurve:
    """Fixed point of (V, q, m) for any loss, by plain iteration. The minimisation is convex, so
    that there is only one fixed point.

    `converged` is False if max_steps steps did not suffice, as happens close to the separability
    threshold at vanishing ridge.
    """
    spectrum, ridge, load = _problem(system)

    def update(state: tuple[Scalar, Scalar, Scalar], args: tuple) -> tuple[Scalar, Scalar, Scalar]:
        system, spectrum, ridge, load = args
        response, q = jnp.exp(state[0]), jnp.exp(state[1])
        channel = system.channel.averages(response, _fields(system, q, state[2]))
        prior = spectrum.averages(ridge, load * channel.stiffness)
        pull = load * channel.alignment
        power = load * channel.power * prior.power + pull**2 * prior.signal
        return jnp.log(prior.response), jnp.log(power), pull * prior.overlap

    scale = jnp.asarray(system.teacher_power, jnp.float64)
    start = (jnp.zeros(()), jnp.log(0.5 * scale), 0.1 * scale)
    solved = fixed_point(
        update, start, (system, spectrum, ridge, load), tolerance=tolerance, max_steps=max_steps
    )
    log_response, log_power, m = solved.value
    return _curve(
        system, jnp.exp(log_response), jnp.exp(log_power), m, solved.residual, solved.converged
    )


def _problem(system: FeatureRegression) -> tuple[FeatureSpectrum, Scalar, Scalar]:
    """Spectrum, ridge added to the summed loss, and n/p."""
    count = jnp.asarray(system.feature_count, jnp.float64)
    return system.spectrum, jnp.asarray(system.summed_ridge, jnp.float64), system.n_train / count


def _fields(system: FeatureRegression, q: Scalar, m: Scalar) -> Fields:
    """The joint Gaussian fields at an example. Features with a common mean also fit the mean of the
    labels."""
    if isinstance(system.labels, SignLabels):
        return Fields(q, system.teacher_power, m)
    mean = jnp.where(
        jnp.asarray(system.fits_mean), system.labels.moments(0.0, system.teacher_power).mean, 0.0
    )
    return Fields(q, system.teacher_power, m, student_mean=mean)


def _curve(
    system: FeatureRegression,
    response: Scalar,
    q: Scalar,
    m: Scalar,
    residual: Scalar,
    converged: Bool[Array, ""],
) -> FeatureCurve:
    spectrum, ridge, load = _problem(system)
    fields = _fields(system, q, m)
    channel = system.channel.averages(response, fields)
    errors = system.channel.errors(response, fields)
    stiffness, pull = load * channel.stiffness, load * channel.alignment
    prior = spectrum.averages(ridge, stiffness)
    dimension = system.feature_count * stiffness * prior.response
    estimate = errors.test_error
    if isinstance(system.loss, Square):
        # 1 - effective_dimension / n, without cancellation
        estimate = errors.train_error * (1 + response) ** 2
    return FeatureCurve(
        **vars(errors),
        teacher_overlap=m,
        self_overlap=q + m**2 if isinstance(system.labels, ClassLabels) else q,
        weight_power=load * channel.power * prior.weight_power + pull**2 * prior.weight_signal,
        response=response,
        effective_dimension=dimension,
        effective_ridge=ridge / stiffness,
        cross_validation=estimate,
        residual=residual,
        converged=converged,
    )


# ------------------------------------------------------------------------------------------------
# The penalty at which a feature map generalises best.

Theory = Callable[[FeatureRegression], FeatureCurve]

# The ridges of the summed loss that are tried before the best one is refined: exponents of ten
# (first, last, number). Losses other than the square loss are iterated, which is slow at small
# ridges, where their fields grow without bound.
SQUARE, ITERATED = (-8.0, 6.0, 57), (-4.0, 4.0, 25)
HALVINGS = 30


class OptimalRidge(FeatureCurve):
    """Errors and order parameters at the best ridge.

    Fields:
        ridge: best ridge, in the convention of the system's `penalty`.
        slope: |d error / d log ridge| at the best ridge.
    """

    ridge: Float[Array, ""]
    slope: Float[Array, ""]


@theory
def optimal_ridge(system: FeatureRegression, *, objective: str = "test_error") -> OptimalRidge:
    r"""Ridge at which an observable of `asymptotics` is smallest, with all observables at that
    ridge.

    $$ \lambda^* = \arg\min_\lambda E(\lambda) $$

    The ridge of the system is not used. A scan over $\ln \lambda$ is followed by a search for the
    root of the derivative. The search uses Newton's method for the square loss, whose result can be
    differentiated, and bisection for other losses. `converged` is False if the best ridge lies
    outside of 1e-8 .. 1e6 (1e-4 .. 1e4 for other losses than the square loss), for example because
    nothing about the target can be learned.

    Args:
        objective: name of the observable of `FeatureCurve` that is minimised; "test_error" by
            default.

    Raises:
        ValueError: for an observable that does not exist.

    Accuracy: 1e-9 in ln ridge.

    Source: derived here, by implicit differentiation of the equations of Loureiro, Gerbelot et al.
    (2021).

    >>> from orderparam.losses import RealLabels
    >>> from orderparam.systems.random_features import RandomFeatures
    >>> noisy = RandomFeatures(200, 400, n_train=300, ridge=1.0, labels=RealLabels(noise=0.1))
    >>> best = optimal_ridge(noisy)
    >>> round(float(best.ridge), 4), round(float(best.test_error), 4)
    (0.0514, 0.4222)
    """
    if objective not in FeatureCurve.dims():
        raise ValueError(
            f"objective = {objective!r}{nearest(objective, list(FeatureCurve.dims()))}"
        )
    square = isinstance(system.loss, Square)
    low, high, points = SQUARE if square else ITERATED
    grid = jnp.log(10.0) * jnp.linspace(low, high, points)
    coarse = asymptotics if square else partial(iterate, tolerance=1e-5, max_steps=300)

    def error(
        log_ridge: Float[Array, ""], system: FeatureRegression, curve: Theory = asymptotics
    ) -> Float[Array, ""]:
        return getattr(curve(system.with_summed_ridge(jnp.exp(log_ridge))), objective)

    def downhill(log_ridge: Float[Array, ""], system: FeatureRegression) -> Float[Array, ""]:
        return -jax.jvp(lambda u: error(u, system), (log_ridge,), (jnp.ones_like(log_ridge),))[1]

    best = jnp.argmin(jax.vmap(lambda u: error(u, system, coarse))(grid))
    inside: Bool[Array, ""] = (best > 0) & (best < points - 1)
    left, right = grid[jnp.maximum(best - 1, 0)], grid[jnp.minimum(best + 1, points - 1)]
    if square:
        root = decreasing_root(downhill, left, right, system)
        place, slope, found = root.value, root.residual, root.converged
    else:
        still, bisection = (
            jax.lax.stop_gradient(system),
            optimistix.Bisection(rtol=0, atol=0, flip=True),
        )
        ends = {"lower": left, "upper": right}
        halved = optimistix.root_find(
            downhill,
            bisection,
            (left + right) / 2,
            still,
            options=ends,
            max_steps=HALVINGS,
            throw=False,
        )
        place, slope, found = halved.value, halved.state.error, jnp.asarray(True)
    place = jnp.where(inside, place, grid[best])
    at_best = system.with_summed_ridge(jnp.exp(place))
    curve = asymptotics(at_best)
    fields = {name: getattr(curve, name) for name in type(curve).dims()}
    fields["converged"] = curve.converged & inside & found
    return OptimalRidge(**fields, ridge=jnp.asarray(at_best.ridge), slope=jnp.abs(slope))
