"""Exact overlaps after several giant steps, in the limit of large input dimension.

On fresh batches the projections M of w on the teacher's directions and o2 = |w|^2 - |M|^2 obey a
closed recursion. With z ~ N(0, I_r), h = M.z + sqrt(o2) G + bias, and a batch of sample_ratio d
examples,

    M  <- M + step E[y sigma'(h) z],
    o2 <- o2 (1 + step E[y sigma''(h)])^2 + (step^2 / sample_ratio) E[y^2 sigma'(h)^2],
    M = 0, o2 = 1 at the start.

The recursion is derived here, from the conditional law of a Gaussian batch given its fields. Which
directions are learned at which step was found by Dandi, Krzakala, Loureiro, Pesce, Stephan 2023
(arXiv:2305.18270).

If the same batch is used twice, the field of an example contains the example's own label after the
first step,

    h1 = (1 + b) h0 + M1.z + sqrt(v) G + (step/sample_ratio) y sigma'(h0 + bias),
    b = step E[y] E[sigma''],
    v = step^2 E[y^2] E[sigma'^2] / sample_ratio,
    M2 = M1 + step E[y z sigma'(h1 + bias)],

so that sigma'(h1) is no longer a function of M1.z alone, and the overlap with a direction of any
information exponent may grow (Dandi, Troiani, Arnaboldi, Pesce, Zdeborova, Krzakala 2024,
arXiv:2402.03220).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian import Activation, standard_normal_rule
from orderparam.gaussian.quadrature import LEAN
from orderparam.gaussian.rules import hermite_product
from orderparam.systems.several_steps.model import SeveralSteps

Scalar = Float[Array, ""]
# Gauss-Hermite nodes in each direction orthogonal to M: exact for polynomials g of degree up to 18
_ACROSS = 20


class StepPath(Result):
    """Overlaps of a neuron with the teacher's directions along the steps, the start included.

    Fields:
        overlap: projection M_k of the neuron's weights w on each direction of the teacher.
        orthogonal: squared norm |w|^2 - |M|^2 of the part of w that is orthogonal to all directions
            of the teacher.
        cosine_squared: M_k^2 / |w|^2.
    """

    overlap: Float[Array, "time direction"]
    orthogonal: Float[Array, "time"]
    cosine_squared: Float[Array, "time direction"]


class ReusePath(Result):
    """Overlaps of a neuron with the teacher's direction when one batch is used twice.

    Fields:
        overlap: projection M of the weights on the direction, at the start and after one and two
            steps.
    """

    overlap: Float[Array, "time direction"]


class _Slopes(NamedTuple):
    """Gaussian averages of sigma'(centre + sqrt(variance) G): the mean, its derivative with respect
    to the centre, and the mean square."""

    mean: Array
    derivative: Array
    square: Array


@theory
def fresh_batches(system: SeveralSteps) -> StepPath:
    r"""Overlaps after each of `steps` giant steps on fresh batches, in the limit of large input
    dimension.

    With $M$ the projections of $w$ on the teacher's directions, $o^2$ the squared norm of the part
    of $w$ orthogonal to them, $h = M \cdot z + o G + b$ (b is `bias`), step size $s$ (`step`),
    $\alpha$ (`sample_ratio`) examples per dimension in a batch and labels $y = g(z)$ plus noise,
    the recursion from $M = 0$, $o^2 = 1$ is

    $$ M \leftarrow M + s\, E[y\, \sigma'(h)\, z], \qquad
       o^2 \leftarrow o^2 (1 + s\, E[y\, \sigma''(h)])^2 + \frac{s^2}{\alpha} E[y^2 \sigma'(h)^2] $$

    Accuracy: 1e-9 for targets of one direction and for polynomials. Averages of other targets of
    several directions use 20 Gauss-Hermite nodes in each direction orthogonal to M.

    Source: derived here, from the conditional law of a Gaussian batch given its fields; which
    directions are learned at which step agrees with Dandi, Krzakala, Loureiro, Pesce, Stephan
    (2023).

    >>> path = fresh_batches(SeveralSteps(target="z1 + z1*z2", steps=2))
    >>> path.overlap.shape, bool(path.overlap[1, 1] == 0), bool(path.overlap[2, 1] > 0)
    ((3, 2), True, True)
    """
    directions = system.teacher.dimension

    def step(
        state: tuple[Array, Scalar], _: None
    ) -> tuple[tuple[Array, Scalar], tuple[Array, Scalar]]:
        following = _fresh_step(system, *state)
        return following, following

    start = (jnp.zeros(directions), jnp.ones(()))
    _, (overlap, orthogonal) = jax.lax.scan(step, start, length=system.steps)
    overlap = jnp.concatenate([start[0][None], _cleared(overlap)])
    orthogonal = jnp.concatenate([start[1][None], orthogonal])
    power = jnp.sum(overlap**2, axis=1) + orthogonal
    return StepPath(
        overlap=overlap, orthogonal=orthogonal, cosine_squared=overlap**2 / power[:, None]
    )


def _one_direction(system: SeveralSteps) -> None:
    if system.teacher.dimension != 1:
        raise ValueError(
            f"target = {system.target!r}: the theory of a batch that is used twice needs a single "
            "direction"
        )


@theory(check=_one_direction)
def reused_batch(system: SeveralSteps) -> ReusePath:
    r"""Overlaps after one and two giant steps on the same batch, in the limit of large input
    dimension.

    After the first step the field of an example contains its own label,

    $$ h_1 = (1 + b) h_0 + M_1 z + \sqrt{v}\, G + \frac{s}{\alpha} y\,
       \sigma'(h_0 + b_0), \qquad M_2 = M_1 + s\, E[y z\, \sigma'(h_1 + b_0)] $$

    with $h_0 = w \cdot x$ at the start, $b_0$ the `bias`, $b = s E[y] E[\sigma'']$, $v = s^2 E[y^2]
    E[\sigma'^2] / \alpha$ and $M_1 = s E[y z] E[\sigma']$. The field then depends on the label
    itself, so that a direction of any information exponent may grow in the second step. The number
    of `steps` is not used.

    Raises:
        ValueError: for a target of several directions.

    Accuracy: 1e-9.

    Source: derived here; the effect is that of Dandi, Troiani, Arnaboldi, Pesce, Zdeborová,
    Krzakala (2024).

    >>> path = reused_batch(SeveralSteps(target="z**3 - 3*z", sample_ratio=2.0))
    >>> first, second = (float(path.overlap[step, 0]) for step in (1, 2))
    >>> path.overlap.shape, abs(first) < 1e-9, round(second, 4)
    ((3, 1), True, -0.0685)
    """
    target, step = system.teacher, system.step
    z, weight = standard_normal_rule(list(dict.fromkeys((0.0, *target.kinks))), LEAN)
    label = target(z[:, None])
    field, density = standard_normal_rule(
        [kink - system.bias for kink in _bends(system.activation)], LEAN
    )
    slope = system.activation.derivative(field + system.bias)
    power = jnp.sum(weight * label**2) + system.noise
    first = step * jnp.sum(weight * label * z) * jnp.sum(density * slope)
    stretch = 1 + step * jnp.sum(weight * label) * jnp.sum(density * slope * field)
    spread = step**2 / system.sample_ratio * power * jnp.sum(density * slope**2)

    def line(total: Scalar, node: tuple[Scalar, Scalar, Scalar]) -> tuple[Scalar, None]:
        h0, mass, own = node  # own: coefficient of an example's own label in its field
        variance = spread + own**2 * system.noise
        slopes = _slopes(
            system.activation, stretch * h0 + first * z + own * label + system.bias, variance
        )
        # The Gaussian label noise enters both the label and the field, and is averaged through
        # integration by parts.
        return total + mass * jnp.sum(
            weight * z * (label * slopes.mean + system.noise * own * slopes.derivative)
        ), None

    nodes = (field, density, step / system.sample_ratio * slope)
    second, _ = jax.lax.scan(line, jnp.zeros(()), nodes)
    return ReusePath(
        overlap=_cleared(jnp.stack([jnp.zeros(()), first, first + step * second]))[:, None]
    )


def first_moments(system: SeveralSteps) -> tuple[Float[Array, "direction"], Scalar]:
    """The means E[y z] over the labels and E[sigma'(w.x + bias)] over the inputs at the start,
    where M = 0."""
    directions = system.teacher.dimension
    _, weight, pull, _, _ = _labels(system, jnp.zeros(directions))
    slope = _slopes(system.activation, jnp.asarray(system.bias, jnp.float64), jnp.ones(())).mean
    return weight @ pull, slope


def _fresh_step(
    system: SeveralSteps, overlap: Float[Array, "direction"], orthogonal: Scalar
) -> tuple[Array, Scalar]:
    u, weight, pull, mean, power = _labels(system, overlap)
    centre = _length(overlap) * u + system.bias
    slopes = _slopes(system.activation, centre, orthogonal)
    growth = 1 + system.step * jnp.sum(weight * mean * slopes.derivative)
    diffusion = system.step**2 / system.sample_ratio * jnp.sum(weight * power * slopes.square)
    return overlap + system.step * (weight * slopes.mean) @ pull, orthogonal * growth**2 + diffusion


def _labels(system: SeveralSteps, overlap: Float[Array, "direction"]) -> tuple[Array, ...]:
    """Nodes of u = M.z / |M| with their weights, and the means of y z, y and y^2 given u."""
    target, directions = system.teacher, system.teacher.dimension
    length = _length(overlap)
    along = jnp.where(
        length > 0, overlap / jnp.where(length > 0, length, 1.0), jnp.eye(directions)[0]
    )
    far = jnp.where(length > 0, length, 1e-12)
    cuts = [jnp.zeros(()), *((bend - system.bias) / far for bend in _bends(system.activation))]
    if directions == 1:
        cuts += [kink * along[0] for kink in target.kinks]
    u, weight = standard_normal_rule(cuts, LEAN)
    frame = _frame(along)
    across, mass = hermite_product(_ACROSS, directions - 1)
    z = u[:, None, None] * frame[0] + across @ frame[1:]
    label = target(z)
    noisy = jnp.sum(mass * label**2, axis=1) + system.noise
    return u, weight, jnp.einsum("n,un,unk->uk", mass, label, z), label @ mass, noisy


def _slopes(activation: Activation, centre: Float[Array, "*node"], variance: Scalar) -> _Slopes:
    deviation = jnp.sqrt(jnp.maximum(variance, 1e-30))  # positive also for a step of size zero
    x, weight = standard_normal_rule(
        [(bend - centre) / deviation for bend in _bends(activation)], LEAN
    )
    slope = activation.derivative(centre[..., None] + deviation * x)
    mean, derivative = (
        jnp.sum(weight * slope, axis=-1),
        jnp.sum(weight * slope * x, axis=-1) / deviation,
    )
    return _Slopes(mean, derivative, jnp.sum(weight * slope**2, axis=-1))


def _bends(activation: Activation) -> tuple[float, ...]:
    """The places where sigma' has a kink or an extremum. Every saturating activation changes its
    slope around the origin."""
    return tuple(dict.fromkeys((0.0, *activation.kinks)))


def _cleared(overlap: Float[Array, "*entry"]) -> Float[Array, "*entry"]:
    """The overlaps, with entries that are zero up to rounding replaced by zeros."""
    return jnp.where(jnp.abs(overlap) < 1e-14, 0.0, overlap)


def _length(vector: Float[Array, "direction"]) -> Scalar:
    """The norm |v|, whose derivative at v = 0 (where all overlaps start) is defined as 0."""
    square = jnp.sum(vector**2)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def _frame(along: Float[Array, "direction"]) -> Float[Array, "direction direction"]:
    """An orthogonal matrix (a Householder reflection) whose first row is the given unit vector."""
    first = jnp.eye(len(along))[0]
    sign = jnp.where(along[0] > 0, -1.0, 1.0)
    mirror = along - sign * first  # this sign keeps its norm above 1
    return sign * (jnp.eye(len(along)) - 2 * jnp.outer(mirror, mirror) / (mirror @ mirror))
