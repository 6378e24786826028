"""State evolution of the Bayes-optimal committee: the K x K overlap Q of weights and estimates.

    Qh = alpha E_{omega ~ N(0, Q)} sum_y (grad Z_y)(grad Z_y)^T / Z_y,   V = 1 - Q,
    Q = E <w><w>^T for weights w that are observed in Gaussian noise of precision Qh.

Z_y(omega, V) is the probability of label y if the fields of the units have the law N(omega, V), and
grad is the gradient in omega. The equations are exact as d grows at fixed K: Aubin, Maillard,
Barbier, Krzakala, Macris, Zdeborová 2018 (arXiv:1806.05451). Q is symmetric under exchange of the
units: Q = q_s P + q_d (1 - P) with P = 11^T/K. In the code the eigenvalue along (1, .., 1), with
index s, is called `uniform`; the other eigenvalue, with index d, is called `orthogonal`. If q_d =
0 all units have the same estimate. If q_d > 0 the units have different estimates (specialisation).
"""

import itertools
import math
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, xlogy
from jaxtyping import Array, Bool, Float

from orderparam.core.late import brentq, minimize_scalar
from orderparam.core.needs import at_least, equal
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.symmetric import Rule, equal_rule, field_rule
from orderparam.solve.relaxation import rest_point
from orderparam.solve.solved import Solved
from orderparam.systems.committee.channel import evidence, label_counts
from orderparam.systems.committee.model import Committee

Scalar = Float[Array, ""]


_LEAST_EVIDENCE = 1e-13  # less probable labels are left out of the averages
_LEAST_PRECISION, _LARGEST_PRECISION = 1e-6, 1e3  # range in which qh_s is searched
_NO_GAIN = 1e-12  # a smaller product of slopes is zero up to rounding
_APART = (0.05, 10.0)  # bounds of the precision qh_d at which the specialised state ends
_NEARLY = 0.999  # overlap with which the iteration starts if `start` is "informed"
_SEED = 1e-13  # added to both modes of Q, so that none vanishes and the symmetry can break


class Modes(NamedTuple):
    """Eigenvalues of a matrix that is symmetric under exchange of the units.

    `uniform` is the eigenvalue along (1, .., 1); `orthogonal` is the one orthogonal to (1, .., 1).
    """

    uniform: Scalar
    orthogonal: Scalar


class TeacherCommittee(Result):
    """Overlaps of the weights with their estimates, and errors.

    Fields:
        overlap: Q_11, overlap of a unit's weights with their estimate.
        cross_overlap: Q_12, overlap of a unit's weights with the estimate of another unit; 0 for
            one unit.
        error: mean square error of a weight, 1 - Q_11 for the Bayes-optimal estimate.
        classification_error: probability that the likeliest label of a new input is wrong.
        converged: whether the iteration converged.
    """

    overlap: Scalar
    cross_overlap: Scalar
    error: Scalar
    classification_error: Scalar
    converged: Bool[Array, ""]


class OptimalCommittee(TeacherCommittee):
    """Bayes-optimal solution of state evolution.

    Fields:
        free_entropy: (1/d) ln P(y | x) at this solution; for perfectly recovered binary weights it
            is -K ln 2.
        overlap_error: quadrature error of `overlap`, estimated as the change of the overlap if the
            quadrature steps are longer by a quarter. It is estimated for K > 2 and units that may
            specialise, and is 0 otherwise.
        residual: largest relative change of an eigenvalue of Q when the equations are applied once.
        steps: number of steps of the flow that the equations define.
    """

    free_entropy: Scalar
    overlap_error: Scalar
    residual: Scalar
    steps: Scalar


class Specialisation(Result):
    """Sample ratio at which the units specialise.

    Fields:
        sample_ratio: n/d above which the state with equal estimates is unstable; inf if this state
            is stable at every n/d.
        overlap: Q_11 at that point.
    """

    sample_ratio: Scalar
    overlap: Scalar


class InformationTransition(Result):
    """Transitions of a committee with binary weights.

    Fields:
        information: n/d above which the examples determine the weights, because perfect recovery
            has a larger free entropy than the state with equal estimates. Message passing stays in
            the state with equal estimates. NaN if the units specialise at a smaller n/d.
        specialisation_ratio: n/d at which the units specialise.
        algorithmic: n/d at which the specialised state ends and message passing recovers the
            weights; inf if the state with equal estimates is stable at every n/d.
    """

    information: Scalar
    specialisation_ratio: Scalar
    algorithmic: Scalar


@theory(differentiable=False)
def state_evolution(
    system: Committee,
    *,
    start: Literal["uninformed", "symmetric", "informed"] = "uninformed",
    max_steps: int = 200,
    tolerance: float = 1e-10,
) -> OptimalCommittee:
    r"""Bayes-optimal overlaps and error of a committee as d grows, by state evolution.

    Let $Z_y(\omega, V)$ be the probability of label y if the fields of the units have the law
    $N(\omega, V)$. With $\alpha$ = `sample_ratio` and K = `hidden`, the K x K overlap Q solves

    $$ \hat Q = \alpha\, E_{\omega \sim N(0, Q)} \sum_y \frac{(\nabla Z_y)(\nabla Z_y)^T}{Z_y},
          \qquad
       V = 1 - Q, \qquad Q = E \langle w \rangle \langle w \rangle^T $$

    where $\langle w \rangle$ is the posterior mean of the weights of all units at one input,
    observed in Gaussian noise of precision $\hat Q$. The diagonal entries of Q are `overlap`, the
    others are `cross_overlap`, and $q_d$ is their difference. The solution is the fixed point of
    the flow $\dot q = q \ln(\text{right-hand side}/q)$ of both eigenvalues of Q.

    Args:
        start: "uninformed" starts near Q = 0, as message passing does; "symmetric" keeps the
            estimates of all units equal, $q_d = 0$; "informed" starts from the true weights.
        max_steps: largest number of steps of the flow.
        tolerance: relative change of Q below which the flow counts as converged.

    Accuracy: averages over fields are accurate to 1e-8 for two units up to $q_d = 0.95$, to 2e-6
    for three units up to $q_d = 0.7$ and to 2e-5 up to 0.95, and to 2e-3 for five units;
    `overlap_error` estimates this error. `classification_error` is accurate to 1e-4 for K <= 3 up
    to $q_d = 0.7$ and for units with equal estimates, otherwise to 1e-2, and for K > 5 to 2e-2.
    This theory cannot be differentiated.

    Source: Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová (2018).

    >>> found = state_evolution(Committee(1.5), start="symmetric")
    >>> round(float(found.overlap), 6), bool(found.converged)
    (0.307237, True)
    """
    first = {"uninformed": (0.05, 0.01), "symmetric": (0.05,), "informed": (_NEARLY, _NEARLY)}[
        start
    ]
    if system.hidden == 1:
        first = first[:1]

    def modes(logs: Float[Array, "mode"]) -> Modes:
        return Modes(*jnp.exp(logs), *[jnp.zeros(())] * (2 - len(first)))

    def solved(points: Rule, begin: Float[Array, "mode"]) -> Solved:
        def field(logs: Float[Array, "mode"], system: Committee) -> Float[Array, "mode"]:
            new = _weights(system, _labels(system, modes(logs), points)[0], points)[0]
            return jnp.log(jnp.stack(new)[: len(first)] + _SEED) - logs

        return rest_point(field, begin, system, tolerance=tolerance, max_steps=max_steps)

    # With equal estimates all fields are equal: a rule for one normal variable is enough.
    rules = equal_rule if start == "symmetric" else field_rule
    points, *longer = rules(system.hidden)
    begin = jnp.log(jnp.asarray(first))
    coarse = [solved(rule, begin) for rule in longer]
    found = solved(points, coarse[0].value if coarse else begin)
    every = [*coarse, found]
    precision, log_evidence, _ = _labels(system, modes(found.value), points)
    q, log_partition = _weights(system, precision, points)
    own, cross = _entries(system, q)
    return OptimalCommittee(
        overlap=own,
        cross_overlap=cross,
        error=1 - own,
        classification_error=_labels(
            system, modes(found.value), rules(system.hidden, kinks=True)[0]
        )[2],
        converged=jnp.all(jnp.stack([one.converged for one in every])),
        free_entropy=log_partition
        - _trace(system, q, precision) / 2
        + system.sample_ratio * log_evidence,
        overlap_error=jnp.abs(_entries(system, modes(coarse[0].value))[0] - own)
        if coarse
        else jnp.zeros(()),
        residual=jnp.max(jnp.stack([one.residual for one in every])),
        steps=jnp.sum(jnp.stack([one.steps for one in every])).astype(float),
    )


_SEVERAL = {"hidden": at_least(2, why="one unit cannot specialise")}


@theory(traced=False, needs=_SEVERAL)
def specialisation(system: Committee) -> Specialisation:
    r"""Sample ratio at which the state with equal estimates of all units becomes unstable.

    Let $\hat i$ be the right-hand side of the equation for $\hat Q$ in `state_evolution` at $\alpha
    = 1$, and let the subscripts s and d denote the eigenvalues of a matrix along (1, .., 1) and
    orthogonal to it. The state is unstable beyond the $\alpha$ (`sample_ratio` of the result) with

    $$ \alpha\, \frac{\partial \hat i_d}{\partial q_d} \frac{\partial q_d}{\partial \hat q_d} =
          1, \qquad
       \frac{\partial \hat i_d}{\partial q_d} = E \sum_y \frac{(\partial_1 \partial_1 Z_y -
          \partial_1 \partial_2 Z_y)^2}{Z_y}, \quad \frac{\partial q_d}{\partial \hat q_d} = E (1
          - \langle w_1 w_2 \rangle)^2 $$

    on the curve $\alpha(\hat q_s)$ of states with $q_d = 0$, which is explicit. Here $\langle w_1
    w_2 \rangle$ is the posterior mean of the product of two weights at one input. For Gaussian
    weights the last factor is 1. For a parity the state with equal estimates is Q = 0. With two
    units all of Q becomes nonzero at the same $\alpha$; with more units Q = 0 stays stable, and
    `sample_ratio` is inf. The system's `sample_ratio` is not used.

    Raises:
        ValueError: for a single unit.

    Accuracy: 1e-8 for any K, because only integrals over one field are needed. This theory cannot
    be differentiated.

    Source: Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová (2018) for the transition of two
    units; the condition is derived here.

    >>> found = specialisation(Committee(1.0))
    >>> round(float(found.sample_ratio), 6), round(float(found.overlap), 6)
    (2.052382, 0.355474)
    """

    def gain(precision: float) -> tuple[float, float, float]:
        """Product of both slopes at alpha = 1, the sample ratio alpha, and Q_11, at a given
        qh_s."""
        rate, ratio, overlap = map(
            float, _gain(system, jnp.asarray(precision), equal_rule(system.hidden)[0])
        )
        return rate, ratio, overlap

    if system.rule == "parity":
        rate, _, overlap = gain(0.0)
        return Specialisation(
            sample_ratio=jnp.asarray(1 / rate if rate > _NO_GAIN else np.inf),
            overlap=jnp.asarray(overlap),
        )
    grid = np.geomspace(0.02, _LARGEST_PRECISION, 48)
    rates = [ratio * rate for rate, ratio, _ in map(gain, grid)]
    after = next((i for i, rate in enumerate(rates) if rate > 1), None)
    if after is None:
        return Specialisation(sample_ratio=jnp.asarray(np.inf), overlap=jnp.asarray(np.nan))
    place = brentq(
        lambda x: gain(x)[0] * gain(x)[1] - 1,
        grid[after - 1] if after else _LEAST_PRECISION,
        grid[after],
        xtol=1e-11,
    )
    _, ratio, overlap = gain(place)
    return Specialisation(sample_ratio=jnp.asarray(ratio), overlap=jnp.asarray(overlap))


@theory(
    traced=False,
    needs=_SEVERAL
    | {"weights": equal("binary", why="Gaussian weights are never recovered exactly")},
)
def information_transition(system: Committee) -> InformationTransition:
    r"""Sample ratios at which the examples determine binary weights, at which the units specialise,
    and at which message passing recovers the weights.

    At `information` the free entropy per dimension of the state with equal estimates, $q_d = 0$,
    equals that of perfect recovery,

    $$ \frac1d \ln P(y \mid x) = -K \ln 2 $$

    with K = `hidden`. `specialisation_ratio` is the sample ratio of `specialisation`. `algorithmic`
    is the spinodal of the specialised state: the largest $\alpha = \hat q_d/\hat i_d$ on the curve
    $\hat q_s/\hat i_s = \hat q_d/\hat i_d$ of specialised states, in the notation of
    `specialisation`. The system's `sample_ratio` is not used.

    Raises:
        ValueError: for Gaussian weights, which are never recovered exactly, or a single unit.

    Accuracy: 1e-6. This theory cannot be differentiated.

    Source: Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová (2018); the curve is derived here.

    >>> found = information_transition(Committee(1.0, weights="binary"))
    >>> round(float(found.information), 4), round(float(found.algorithmic), 4)
    (1.5461, 1.9771)
    """
    limit = -system.hidden * math.log(2)

    def above(ratio: float) -> float:
        return (
            float(state_evolution(system.with_(sample_ratio=ratio), start="symmetric").free_entropy)
            - limit
        )

    specialisation_ratio = float(specialisation(system).sample_ratio)
    top = specialisation_ratio if np.isfinite(specialisation_ratio) else float(system.hidden**2)
    information = brentq(above, 0.1 * system.hidden, top, xtol=1e-6) if above(top) < 0 else np.nan
    algorithmic = _spinodal(system) if np.isfinite(specialisation_ratio) else np.inf
    return InformationTransition(
        information=jnp.asarray(information),
        specialisation_ratio=jnp.asarray(specialisation_ratio),
        algorithmic=jnp.asarray(algorithmic),
    )


def _spinodal(system: Committee) -> float:
    """Largest sample ratio alpha at which the specialised state exists.

    Specialised states lie on the curve alpha = qh_d/i_d = qh_s/i_s, with i the conjugate at alpha =
    1. For each qh_d the root in qh_s is found; alpha is then maximised over qh_d.
    """
    points = field_rule(system.hidden)[0]

    def ratios(uniform: float, orthogonal: float) -> tuple[float, float]:
        rates = _rates(system, Modes(jnp.asarray(uniform), jnp.asarray(orthogonal)), points)
        return uniform / float(rates.uniform), orthogonal / float(rates.orthogonal)

    def difference(log_uniform: float, orthogonal: float) -> float:
        of_uniform, of_orthogonal = ratios(math.exp(log_uniform), orthogonal)
        return math.log(of_uniform / of_orthogonal)

    def ratio(log_orthogonal: float) -> float:
        orthogonal = math.exp(log_orthogonal)
        upper = log_orthogonal + 1
        while difference(upper, orthogonal) < 0:
            upper += 1
        return ratios(
            math.exp(brentq(difference, log_orthogonal, upper, args=(orthogonal,), xtol=1e-12)),
            orthogonal,
        )[1]

    return -float(
        minimize_scalar(
            lambda u: -ratio(u), bounds=np.log(_APART), method="bounded", options={"xatol": 1e-6}
        ).fun
    )


def _entries(system: Committee, q: Modes) -> tuple[Scalar, Scalar]:
    """Diagonal and off-diagonal entry of the matrix with the modes `q`."""
    cross = (q.uniform - q.orthogonal) / system.hidden
    return cross + q.orthogonal, jnp.where(system.hidden > 1, cross, 0.0)


def _trace(system: Committee, one: Modes, other: Modes) -> Scalar:
    """Trace of the product of two matrices with the given modes; the eigenvalue `orthogonal` is (K
    - 1)-fold."""
    return one.uniform * other.uniform + (system.hidden - 1) * one.orthogonal * other.orthogonal


def _powers(x: Float[Array, "*batch hidden"]) -> Modes:
    """Modes of xx^T averaged over permutations of the units: the squared length of x along (1, ..,
    1), and the squared length orthogonal to it divided by K - 1.
    """
    hidden, mean = x.shape[-1], jnp.mean(x, axis=-1)
    return Modes(
        hidden * mean**2, jnp.sum((x - mean[..., None]) ** 2, axis=-1) / max(hidden - 1, 1)
    )


def _spread(x: Array, root: Modes) -> Array:
    """Standard normal vectors x (..., hidden), transformed to a covariance whose modes have the
    square roots `root`.
    """
    mean = jnp.mean(x, axis=-1, keepdims=True)
    return root.orthogonal * (x - mean) + root.uniform * mean


def _labels(system: Committee, q: Modes, points: Rule) -> tuple[Modes, Scalar, Scalar]:
    """Averages over the fields omega ~ N(0, Q) and the labels: the conjugate Qh, E sum_y Z_y ln
    Z_y, and the probability that the likeliest label of a new input is wrong.
    """
    x, weight = points
    q = Modes(*(jnp.clip(part, 0.0, 1 - 1e-9) for part in q))
    if system.hidden == 1:
        q = Modes(q.uniform, q.uniform)
    fields = _spread(jnp.asarray(x), Modes(*(jnp.sqrt(jnp.maximum(part, 1e-30)) for part in q)))
    value, gradient = evidence(
        fields,
        1 - q.orthogonal,
        (q.uniform - q.orthogonal) / system.hidden,
        label_counts(system.hidden, system.rule),
    )
    seen = value > _LEAST_EVIDENCE
    inverse = jnp.where(seen, 1 / jnp.where(seen, value, 1.0), 0.0)
    precision = Modes(
        *(
            system.sample_ratio * jnp.einsum("n,ny,ny->", weight, inverse, part)
            for part in _powers(gradient)
        )
    )
    kept, share = jnp.where(seen, value, 0.0), jnp.asarray(weight)
    return (
        precision,
        share @ jnp.sum(xlogy(kept, kept), axis=-1),
        1 - share @ jnp.max(value, axis=-1),
    )


def _weights(system: Committee, precision: Modes, points: Rule) -> tuple[Modes, Scalar]:
    """Overlap Q of weights that are observed with precision Qh, and the mean logarithm of the
    partition function of the K weights at one input.
    """
    hidden = system.hidden
    if system.weights == "gaussian":
        q = Modes(*(part / (1 + part) for part in precision))
        logs = Modes(*(part - jnp.log1p(part) for part in precision))
        return q, (logs.uniform + (hidden - 1) * logs.orthogonal) / 2
    states, height, weight = _heights(hidden, precision, points)
    mean = jnp.einsum("tns,sk->tnk", jax.nn.softmax(height, axis=-1), states)
    q = Modes(*(jnp.mean(part @ weight) for part in _powers(mean)))
    return q, jnp.mean(logsumexp(height, axis=-1) @ weight) - hidden * math.log(2)


def _heights(
    hidden: int, precision: Modes, points: Rule
) -> tuple[Array, Float[Array, "true node state"], Array]:
    """Binary weights of K units, observed in Gaussian noise of the given precision.

    Returns the 2^K states of the weights; the logarithm of the likelihood of each state, up to a
    constant, for every true state and every quadrature node of the noise; and the quadrature
    weights.
    """
    x, weight = points
    states = jnp.asarray(list(itertools.product((-1.0, 1.0), repeat=hidden)))
    pulls = _spread(states, precision)
    noise = _spread(
        jnp.asarray(x), Modes(*(jnp.sqrt(jnp.maximum(part, 1e-30)) for part in precision))
    )
    # b = Qh w + Qh^(1/2) noise: what is observed of the true state w; (true state, node, hidden)
    b = pulls[:, None] + noise
    return (
        states,
        jnp.einsum("tnk,sk->tns", b, states) - jnp.sum(states * pulls, axis=-1) / 2,
        jnp.asarray(weight),
    )


@jax.jit
def _rates(system: Committee, precision: Modes, points: Rule) -> Modes:
    """Conjugate i = Qh/alpha at the overlap Q of weights that are observed with the given
    precision."""
    return _labels(system.with_(sample_ratio=1.0), _weights(system, precision, points)[0], points)[
        0
    ]


@jax.jit
def _gain(system: Committee, precision: Scalar, points: Rule) -> tuple[Scalar, Scalar, Scalar]:
    """Product of both slopes at alpha = 1, the sample ratio alpha, and Q_11, in the state with qh_s
    = `precision` and q_d = 0.

    An increment dQ changes the mean of (grad Z)(grad Z)^T / Z by the mean of (grad grad Z) dQ (grad
    grad Z) / Z, and an increment of the precision changes Q by the squared covariance of the
    weights. Both statements hold because the teacher is drawn from the prior. At equal fields both
    matrices are symmetric under exchange of the units, and their eigenvalue orthogonal to (1, ..,
    1) is entry 11 minus entry 12.
    """
    system, hidden, zero = system.with_(sample_ratio=1.0), system.hidden, jnp.zeros(())
    x, weight = points
    q = _weights(system, Modes(precision, zero), points)[0]
    uniform = jnp.where(precision > 0, q.uniform, 0.0)
    ratio = precision / _labels(system, Modes(uniform, zero), points)[0].uniform
    fields = jnp.sqrt(uniform) * jnp.asarray(x)
    first = jnp.zeros_like(fields).at[:, 0].set(1.0)
    counts = label_counts(hidden, system.rule)
    values, slopes = jax.jvp(
        lambda fields: evidence(fields, jnp.ones(()), uniform / hidden, counts), (fields,), (first,)
    )
    # the derivative of grad Z along unit 1: its entries 1 and 2 are the entries 11 and 12 of the
    # Hessian of Z
    across = slopes[1][..., 0] - slopes[1][..., 1]
    rate = jnp.einsum(
        "n,ny->", weight, jnp.where(values[0] > _LEAST_EVIDENCE, across**2 / values[0], 0.0)
    )
    if system.weights == "binary":
        states, height, _ = _heights(hidden, Modes(precision, zero), points)
        product = jax.nn.softmax(height, axis=-1) @ (states[:, 0] * states[:, 1])
        rate *= jnp.mean((1 - product) ** 2 @ weight)
    return rate, ratio, _entries(system, Modes(uniform, zero))[0]
