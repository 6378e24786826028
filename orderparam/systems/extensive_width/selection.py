"""Selection between two states of an extensive-width student: the strongest feature is learned in
one of them, and not in the other."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.needs import at_least
from orderparam.core.result import Result
from orderparam.core.verb import experiment, theory
from orderparam.systems.extensive_width.channel import channel, signal
from orderparam.systems.extensive_width.exchange import (
    FREE,
    LikelihoodProblem,
    Wall,
    exchange,
    log_evidence,
    misfit,
    of_all,
    prepared,
    scales,
    weights_of,
)
from orderparam.systems.extensive_width.experiment import affine_part, draw
from orderparam.systems.extensive_width.model import HierarchicalTeacher, Teacher

# ------------------------------------------------------------------------------------------------
# The free energies of both states.


class CompetingStates(Result):
    """The states with and without the strongest feature, at one number of samples.

    Fields:
        free_energy_difference: free energy -ln Z of the state in which the strongest feature is
            learned minus that of the state in which no feature is learned, in nats. Where it is
            negative, the posterior is in the learned state.
        learned_overlap: overlap of the strongest feature in the learned state.
        residual: in the theory, the slope at the minimum divided by d; in the experiment, half the
            difference between the results of the first and of the second half of the draws, which
            estimates the statistical error of the run.
        converged: in the theory, whether the minimum was found; in the experiment, whether the
            residual is below one nat.
    """

    free_energy_difference: Float[Array, ""]
    learned_overlap: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def competing_states(teacher: HierarchicalTeacher) -> CompetingStates:
    r"""Free energy of the state in which the strongest feature alone is learned, minus that of the
    state in which no feature is learned.

    $$ F_1 - F_0 = \frac12 \min_{q \ge q_\sigma / 2} \Big[
       n \ln \Big( 1 - \frac{v_1^2\, g(q)}{\Delta + g(1) \sum_i v_i^2} \Big)
       - d\, (q + \ln(1 - q)) \Big] $$

    with g as in `bayes_optimal` and $q_\sigma$ the overlap with which a feature appears, so that
    the minimum is at the wall $q_\sigma / 2$ where the learned state does not exist. The
    Bayes-optimal state changes where the difference is zero, if the second feature is not learned
    there.

    Raises:
        ValueError: for an activation with a quadratic component.

    Accuracy: 1e-8 per input; leading order in d. Far beyond the jump the state in which nothing is
    learned no longer exists; its continuation then takes its place in the difference.

    Source: derived here, from Nguyen, Barbier (2026).

    >>> teacher = HierarchicalTeacher(16, 8, decay=1.0, noise=0.04, n_train=16 * 3.82335)
    >>> abs(float(competing_states(teacher).free_energy_difference)) < 1e-4
    True
    """
    g = signal(teacher.activation).at
    dim, power = teacher.input_dim, teacher.readout**2
    share = jnp.max(power) / (teacher.noise + channel(teacher.activation).total * jnp.sum(power))

    def height(u: Array) -> Array:
        q = -jnp.expm1(-u)
        return (teacher.n_train * jnp.log1p(-share * g(q)[0]) - dim * (q - u)) / 2

    wall = -jnp.log1p(-middle(teacher))
    u = jax.lax.stop_gradient(_lowest(height, wall))
    # a Newton step at the minimum leaves its value unchanged and carries its derivatives
    slope, curvature = jax.grad(height), jax.grad(jax.grad(height))
    moving = (u > wall + 1e-6) & (curvature(u) > 0)
    step = slope(u) / jnp.where(moving, jax.lax.stop_gradient(curvature(u)), 1.0)
    u = u - jnp.where(moving, step, 0.0)
    # at the wall it is enough that the slope does not point inwards
    residual = jnp.where(moving, jnp.abs(slope(u)), jnp.maximum(-slope(u), 0.0)) / dim
    return CompetingStates(
        free_energy_difference=height(u),
        learned_overlap=-jnp.expm1(-u),
        residual=residual,
        converged=residual < 1e-6,
    )


_GRID, _ZOOMS = 129, 6
_STEADY = 1.0  # largest error of a run in nats: the odds of both states are known to a factor e
_SAME = 0.2  # largest difference of the overlap between the two starts
_FARTHEST = 40.0  # largest u = -ln(1 - q) that is searched


def _lowest(height: Callable[[Array], Array], wall: Float[Array, ""]) -> Float[Array, ""]:
    """The place of the lowest point beyond the wall, by a grid that is refined around it."""
    low, high = jnp.asarray(wall, float), jnp.asarray(_FARTHEST)

    def zoom(ends: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        grid = jnp.linspace(*ends, _GRID)
        best = jnp.argmin(jax.vmap(height)(grid))
        near = grid[jnp.maximum(best - 1, 0)], grid[jnp.minimum(best + 1, _GRID - 1)]
        return near, None

    (low, high), _ = jax.lax.scan(zoom, (low, high), None, length=_ZOOMS)
    return jnp.where(low == wall, wall, (low + high) / 2)


def middle(teacher: Teacher) -> Float[Array, ""]:
    """The overlap that separates the two states: half the overlap with which a feature appears."""
    tables = channel(teacher.activation)
    return tables.overlap(tables.bayes.threshold, tables.bayes) / 2


class _Drawn(NamedTuple):
    """One teacher and its data set, and what the ladders need.

    best: E at the teacher, which is half the sum of squares of the drawn noise over its variance.
    """

    problem: LikelihoodProblem
    ladder: Float[Array, "weight"]
    scale: Float[Array, "weight feature 1"]
    prior: Float[Array, "weight feature input"]
    best: Float[Array, ""]
    middle: Float[Array, ""]


def _drawn(
    teacher: HierarchicalTeacher, data_key: PRNGKeyArray, prior_key: PRNGKeyArray, weights: int
) -> _Drawn:
    data = draw(teacher, data_key, affine_part(teacher.activation))
    problem, ladder = prepared(teacher, data), weights_of(weights, len(data.labels))
    return _Drawn(
        problem,
        ladder,
        scales(teacher.activation, problem, len(data.labels), ladder),
        jax.random.normal(prior_key, (weights, *data.weights.shape)),
        misfit(teacher.activation, problem, problem.truth),
        middle(teacher),
    )


@experiment(needs={"weights": at_least(3), "sweeps": at_least(3)})
def walled_posterior(
    teacher: HierarchicalTeacher,
    key: PRNGKeyArray,
    *,
    weights: int = 24,
    sweeps: int = 2000,
    leapfrog_steps: int = 8,
) -> CompetingStates:
    r"""Free-energy difference of the states with and without the strongest feature, for one teacher
    and one data set.

    $$ \ln Z = \ln P_0 - \int_0^1 \langle E \rangle_\lambda\, d\lambda, \qquad
       E = \frac{1}{2\Delta} \sum_\mu (y_\mu - f(x_\mu))^2 $$

    is measured for each state by replica exchange between weights $\lambda$ of the likelihood from
    0 to 1. A wall confines the overlap $q_1$ of the strongest feature to one side of $q_\sigma /
    2$, half the overlap with which a feature appears; $P_0$ is the prior's probability of that
    side. Trajectories of Hamiltonian Monte Carlo are reflected at the wall. The first third of the
    sweeps is discarded.

    Args:
        weights: number of weights of the likelihood: 0, then geometric from 1.5/n to 1. Default 24.
        sweeps: trajectories of every replica. Default 2000.
        leapfrog_steps: leapfrog steps of a trajectory. Default 8.

    Raises:
        ValueError: for fewer than 3 weights or sweeps, or sizes that are not integers.

    Accuracy: statistical; the integral over the weights is accurate to fourth order in their
    spacing.

    Source: derived here; thermodynamic integration as in Kirkwood (1935).

    >>> import jax
    >>> teacher = HierarchicalTeacher(6, 2, 1.0, 0.1, n_train=20)
    >>> found = walled_posterior(teacher, jax.random.key(0), weights=6, sweeps=60)
    >>> bool(jnp.isfinite(found.free_energy_difference))
    True
    """
    data_key, prior_key, *run_keys = jax.random.split(key, 4)
    drawn = _drawn(teacher, data_key, prior_key, weights)
    dim = drawn.prior.shape[-1]
    towards = drawn.problem.truth[0] / jnp.linalg.norm(drawn.problem.truth[0])
    along = drawn.prior[:, 0] @ towards
    edge = drawn.middle * dim**0.5
    log_z, halves, overlaps = [], [], []
    for side, run_key in zip((1.0, -1.0), run_keys, strict=True):
        # The row starts at that of the teacher, or at a row of the prior reflected to the other
        # side.
        row = (
            jnp.broadcast_to(drawn.problem.truth[0], drawn.prior[:, 0].shape)
            if side > 0
            else drawn.prior[:, 0] + jnp.minimum(0.0, 2 * (edge - along))[:, None] * towards
        )
        found = exchange(
            teacher.activation,
            drawn.problem,
            drawn.ladder,
            drawn.scale,
            drawn.prior.at[:, 0].set(row),
            Wall(side, drawn.middle),
            drawn.middle,
            run_key,
            sweeps,
            leapfrog_steps,
        )
        whole = log_evidence(drawn.ladder, of_all(found))
        log_z.append(norm.logcdf(-side * edge) + whole)
        halves.append(log_evidence(drawn.ladder, found))
        overlaps.append(of_all(found).overlap[0])
    residual = jnp.abs(jnp.diff(halves[1] - halves[0])[0]) / 2
    return CompetingStates(
        free_energy_difference=log_z[1] - log_z[0],
        learned_overlap=overlaps[0],
        residual=residual,
        converged=residual < _STEADY,
    )


# ------------------------------------------------------------------------------------------------
# The posterior itself.


class ExchangedPosterior(Result):
    """Averages over the posterior by replica exchange, from a ladder that starts at the teacher and
    one that starts in the prior.

    Fields:
        overlap: mean of w_i . w_i^0 / d.
        learned: fraction of the draws in which the strongest feature is learned: its overlap is
            above half of that with which a feature appears.
        mutual_information: I(teacher; data) / (number of weights k d) in nats, from ln Z.
        misfit_ratio: mean of sum (y - f)^2 / Delta over the number of samples; 1 on average over
            data sets in equilibrium (Nishimori identity).
        off_diagonal: d times the mean square of w_i . w_j^0 / d over i != j; 1 for independent
            directions.
        largest_off_diagonal: mean of the largest |w_i . w_j^0| / d, i != j, divided by sqrt(2 ln(k
            (k - 1)) / d), the largest value expected among as many independent normal numbers.
        off_diagonal_correlation: mean of (sum over i != j of v_i v_j Q_ij^3)^2 over the sum of the
            means of its squared terms, Q_ij = w_i . w_j^0 / d; 1 if they are uncorrelated.
        start_difference: difference of the strongest feature's overlap between the ladder that
            started at the teacher and the one that started in the prior; zero in equilibrium.
        acceptance_rate: acceptance rate of trajectories, averaged over the replicas.
        converged: whether `start_difference` is below 0.2.
    """

    overlap: Float[Array, "feature"]
    learned: Float[Array, ""]
    mutual_information: Float[Array, ""]
    misfit_ratio: Float[Array, ""]
    off_diagonal: Float[Array, ""]
    largest_off_diagonal: Float[Array, ""]
    off_diagonal_correlation: Float[Array, ""]
    start_difference: Float[Array, ""]
    acceptance_rate: Float[Array, ""]
    converged: Bool[Array, ""]


@experiment(needs={"weights": at_least(3), "sweeps": at_least(3)})
def exchanged_posterior(
    teacher: HierarchicalTeacher,
    key: PRNGKeyArray,
    *,
    weights: int = 24,
    sweeps: int = 2000,
    leapfrog_steps: int = 8,
) -> ExchangedPosterior:
    r"""Posterior averages for one teacher and one data set, by replica exchange between weights
    $\lambda$ of the likelihood.

    $$ \ln p_\lambda(W) = -\frac{\lambda}{2\Delta} \sum_\mu (y_\mu - f(x_\mu))^2
       - \tfrac12 |W|^2, \qquad 0 \le \lambda \le 1 $$

    The replica at $\lambda = 0$ samples the prior and forgets its start, so that no knowledge of
    the teacher remains in equilibrium. Two independent ladders start at the teacher and in the
    prior. The first third of the sweeps is discarded.

    Args:
        weights: number of weights of the likelihood: 0, then geometric from 1.5/n to 1. Default 24.
        sweeps: trajectories of every replica. Default 2000.
        leapfrog_steps: leapfrog steps of a trajectory. Default 8.

    Raises:
        ValueError: for fewer than 3 weights or sweeps, or sizes that are not integers.

    Accuracy: statistical; see `start_difference`.

    Source: Hukushima, Nemoto (1996), with the likelihood in place of the energy.

    >>> import jax
    >>> teacher = HierarchicalTeacher(6, 2, 1.0, 0.1, n_train=20)
    >>> found = exchanged_posterior(teacher, jax.random.key(0), weights=6, sweeps=60)
    >>> found.overlap.shape
    (2,)
    """
    data_key, prior_key, *run_keys = jax.random.split(key, 4)
    drawn = _drawn(teacher, data_key, prior_key, weights)
    samples = teacher.size("n_train")
    at_teacher = jnp.broadcast_to(drawn.problem.truth, drawn.prior.shape)
    ladders = [
        of_all(
            exchange(
                teacher.activation,
                drawn.problem,
                drawn.ladder,
                drawn.scale,
                start,
                FREE,
                drawn.middle,
                run_key,
                sweeps,
                leapfrog_steps,
            )
        )
        for start, run_key in zip((at_teacher, drawn.prior), run_keys, strict=True)
    ]
    mean = jax.tree.map(lambda *parts: sum(parts) / len(parts), *ladders)
    log_z = sum(log_evidence(drawn.ladder, found) for found in ladders) / len(ladders)
    width, dim = drawn.problem.truth.shape
    extreme = jnp.sqrt(2 * jnp.log(max(width * (width - 1), 2)) / dim)
    difference = ladders[0].overlap[0] - ladders[1].overlap[0]
    return ExchangedPosterior(
        overlap=mean.overlap,
        learned=mean.learned,
        mutual_information=(-drawn.best - log_z) / (width * dim),
        misfit_ratio=2 * mean.misfit[-1] / samples,
        off_diagonal=mean.square,
        largest_off_diagonal=mean.largest / extreme,
        off_diagonal_correlation=mean.coupling / mean.separate,
        start_difference=difference,
        acceptance_rate=mean.acceptance,
        converged=jnp.abs(difference) < _SAME,
    )
