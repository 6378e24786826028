"""The asymptotics of convex learning with Gaussian features, n and p large in proportion: two
scalars for the spectrum, three for the loss.

    D_i = ridge + Vh omega_i
    V = (1/p) sum omega/D        q = qh (1/p) sum omega^2/D^2 + mh^2 sum s^2 omega/D^2        m = mh sum s^2/D
    Vh = -(n/p) E dg/dw          qh = (n/p) E g^2                                             mh = (n/p) E sum_y (dZ/dM) g

with the averages of `orderparam.losses.Channel`. Gerace, Loureiro, Krzakala, Mézard, Zdeborová 2020
(arXiv:2002.09339); Loureiro, Gerbelot, Cui, Goldt, Krzakala, Mézard, Zdeborová 2021
(arXiv:2102.08127). For random features of Gaussian inputs the spectrum is that of their Gaussian
equivalent: Mei, Montanari 2019 (arXiv:1908.05355); Goldt et al. 2020; Hu, Lu 2020.
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
# What the theory of a fixed feature map predicts, and the experiment measures under the same names.


class Minimiser(FittedErrors):
    """What theories and experiments of the minimiser have in common.

    effective_dimension:     tr F (F^T H F + ridge)^-1 F^T H, H = diag l'': the effective number of parameters; for the hinge loss
                             the number of examples on the margin.
    cross_validation:        test_error estimated from training errors alone; for the square loss generalised cross-validation,
                             train_error / (1 - effective_dimension / n)^2.
    residual, converged:     of the equation that was solved, or of the minimisation.
    """

    effective_dimension: Float[Array, ""]
    cross_validation: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class FeatureCurve(Minimiser):
    """A theory's.

    response:        V, by how much the prediction at a new example follows its label when that example is added.
    effective_ridge: nu with sum_i omega_i / (omega_i + nu) = effective_dimension.
    """

    response: Float[Array, ""]
    effective_ridge: Float[Array, ""]


Scalar = Float[Array, ""]


@theory
def asymptotics(system: FeatureRegression) -> FeatureCurve:
    """Errors and order parameters in the proportional limit: closed for the square loss, by state
    evolution for the others.
    """
    return _ridge(system) if isinstance(system.loss, Square) else iterate(system)


def ridge_response(
    spectrum: FeatureSpectrum, ridge: Scalar | float, load: Scalar | float
) -> Solved:
    """log V of least squares with load = n/p: V = (1/p) sum omega / (ridge + load omega / (1 + V)),
    one monotone equation.
    """

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
    """Least squares: V from its own equation, m explicit, and q from a linear one."""
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
    """`asymptotics` by state evolution for any loss, also the square one."""
    return iterate(system)


def iterate(
    system: FeatureRegression, tolerance: float = 1e-11, max_steps: int = 3000
) -> FeatureCurve:
    """The fixed point of (V, q, m) for any loss by plain iteration; the minimisation is convex, and
    it has only one.

    `converged` is False when max_steps were not enough, as happens close to the separability
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
    """Spectrum, ridge beside the summed loss, and n/p."""
    count = jnp.asarray(system.feature_count, jnp.float64)
    return system.spectrum, jnp.asarray(system.summed_ridge, jnp.float64), system.n_train / count


def _fields(system: FeatureRegression, q: Scalar, m: Scalar) -> Fields:
    """The fields at an example; a mean of the labels is fitted where the features have a common
    mean.
    """
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

# The ridge beside the summed loss is looked for at these powers of ten before the best is refined.
# Other losses than the square one are iterated, slowly at small ridges, where their fields grow
# without bound.
SQUARE, ITERATED = (-8.0, 6.0, 57), (-4.0, 4.0, 25)
HALVINGS = 30


class OptimalRidge(FeatureCurve):
    """The curve at the best ridge; ridge: in the convention of the system; slope: |d error / d log
    ridge| that is left.
    """

    ridge: Float[Array, ""]
    slope: Float[Array, ""]


@theory
def optimal_ridge(system: FeatureRegression, *, objective: str = "test_error") -> OptimalRidge:
    """argmin over the ridge of an observable of `FeatureCurve`; the ridge of `system` is not used.

    A scan over log ridge, then the root of the derivative, which follows from implicit
    differentiation of the saddle point: by Newton's method for the square loss (and
    differentiable), by bisection to 1e-9 in log ridge for others, whose derivative is known to the
    accuracy of the iteration only. Raises `ValueError` for an observable that does not exist.

    `converged` is False when the best ridge lies outside 1e-8 .. 1e6 (square loss; others: 1e-4 ..
    1e4), as for a target of which nothing can be learned.
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
