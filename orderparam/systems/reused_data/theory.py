"""Training on re-used data: dynamical mean-field theory of every step.

As $d \\to \\infty$ the overlaps after any number of steps are deterministic, and one example and
one weight obey the coupled equations of `causal.py`. They are derived here with the Gaussian cavity
method. For the square loss they are closed equations of matrices whose indices are the steps; for
other losses the average over examples is sampled.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.needs import equal
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.reused_data.causal import Path, causal_sweep, directions
from orderparam.systems.reused_data.model import ReusedCommittee, ReusedData

Series = Float[Array, "time"]
# a path counts as diverging if |w|^2/d reaches this value
_DIVERGED = 1e6


class ReusedPath(Result):
    """Overlaps and errors along training on re-used data, the start included.

    Fields:
        overlap: m = w.w*/d after 0, 1, ... steps.
        self_overlap: q = w.w/d.
        test_error: error on new inputs without label noise: E (h - h*)^2 for regression, the share
            of wrong signs for logistic and hinge loss, E (h^2 - h*^2)^2 for phase retrieval.
        train_loss: mean of the loss over all examples after 0, 1, ... steps.
    """

    overlap: Series
    self_overlap: Series
    test_error: Series
    train_loss: Series


class ClosedPath(Result):
    """Overlaps and errors along training on re-used data, with correlation and response.

    Fields:
        overlap: m = w.w*/d after 0, 1, ... steps.
        self_overlap: q = w.w/d.
        test_error: E (h - h*)^2 on new inputs, without label noise.
        train_loss: mean of (h - y)^2/2 over all examples.
        correlation: C(t, s) = w_t.w_s/d.
        response: R(t, s), change of the field h_t of an example by its slope at step s < t.
        converged: whether the path is finite and |w|^2/d stays below 1e6.
    """

    overlap: Series
    self_overlap: Series
    test_error: Series
    train_loss: Series
    correlation: Float[Array, "time earlier"]
    response: Float[Array, "time earlier"]
    converged: Bool[Array, ""]


class SampledPath(Result):
    """Means over runs of the sampled theory, with their standard errors.

    Fields:
        overlap: m = w.w*/d after 0, 1, ... steps.
        self_overlap: q = w.w/d.
        test_error: error on new inputs without label noise, as in `ReusedPath`.
        train_loss: mean of the loss over all examples.
        correlation: C(t, s) = w_t.w_s/d.
        response: R(t, s), change of the field h_t of an example by its slope at step s < t.
        overlap_uncertainty: standard error of the overlap over the runs.
        self_overlap_uncertainty: standard error of the self-overlap.
        test_error_uncertainty: standard error of the test error.
        train_loss_uncertainty: standard error of the training loss.
        converged: whether the path is finite and |w|^2/d stays below 1e6.
    """

    overlap: Series
    self_overlap: Series
    test_error: Series
    train_loss: Series
    correlation: Float[Array, "time earlier"]
    response: Float[Array, "time earlier"]
    overlap_uncertainty: Series
    self_overlap_uncertainty: Series
    test_error_uncertainty: Series
    train_loss_uncertainty: Series
    converged: Bool[Array, ""]


class ReusedCommitteePath(Result):
    """Overlaps and errors of a committee along training on re-used data, the start included.

    Fields:
        overlap: M = w.w*/d after 0, 1, ... steps.
        self_overlap: Q = w.w/d.
        test_error: E (f - f*)^2 on new inputs, without label noise (no factor 1/2).
        train_loss: mean of (f - y)^2/2 over all examples.
    """

    overlap: Float[Array, "time student teacher"]
    self_overlap: Float[Array, "time student other_student"]
    test_error: Series
    train_loss: Series


class SampledCommitteePath(Result):
    """Means over runs of the sampled theory of a committee, with their standard errors.

    Fields:
        overlap: M = w.w*/d after 0, 1, ... steps.
        self_overlap: Q = w.w/d.
        test_error: E (f - f*)^2 on new inputs, without label noise (no factor 1/2).
        train_loss: mean of (f - y)^2/2 over all examples.
        overlap_uncertainty: standard error of the overlaps over the runs.
        self_overlap_uncertainty: standard error of the self-overlaps.
        test_error_uncertainty: standard error of the test error.
        train_loss_uncertainty: standard error of the training loss.
        converged: whether the path is finite and |w|^2/d stays below 1e6.
    """

    overlap: Float[Array, "time student teacher"]
    self_overlap: Float[Array, "time student other_student"]
    test_error: Series
    train_loss: Series
    overlap_uncertainty: Float[Array, "time student teacher"]
    self_overlap_uncertainty: Float[Array, "time student other_student"]
    test_error_uncertainty: Series
    train_loss_uncertainty: Series
    converged: Bool[Array, ""]


def _enough_samples(
    system: ReusedData | ReusedCommittee, samples: int = 1000, runs: int = 8, seed: int = 0
) -> None:
    students, teachers = system.start[0].shape
    least = directions(students, teachers, system.steps) + 3
    if samples < least:
        raise ValueError(f"samples = {samples}: must be >= {least} for {system.steps} steps")
    if runs < 2:
        raise ValueError(f"runs = {runs}: must be >= 2, to have standard errors")
    if seed < 0:
        raise ValueError(f"seed = {seed}: must be >= 0")


@theory(needs={"task": equal("regression", why="`sampled_dynamics` takes every task")})
def closed_dynamics(system: ReusedData) -> ClosedPath:
    r"""Overlaps, correlation and response at every step for the square loss, in closed form.

    With $H(t, s)$ the response of $w_t$ to a source at $s$, $R(t, s) = -\eta H(t, s + 1)$
    (`response`), $D = (1 - R)^{-1}$ and $\Gamma = \alpha D$ ($\alpha$ `sample_ratio`, $\eta$
    `learning_rate`, $\lambda$ `weight_decay`, $\beta$ `momentum`, $T$ `temperature`),

    $$ H(t{+}1, \cdot) = (1 - \eta\lambda + \beta) H(t, \cdot) - \beta H(t{-}1, \cdot) - \eta \sum_s
       \Gamma(t, s) H(s, \cdot) + e_{t+1} $$

    $$ M_t = H(t, 0)\, m_0 + \eta \sum_{s \ge r} H(t, s{+}1)\, \Gamma(s, r), \qquad
       C = M M^T + H \begin{pmatrix} q_0 - m_0^2 & 0 \\ 0 & \eta^2 \alpha K + 2 \eta T
       \end{pmatrix} H^T $$

    where $K(t, s) = E\, g_t g_s$ is the correlation of the slopes of one example. It follows from
    $e = h - y$ and $Z(t, r) = C(t, r) - M_t - M_r + 1 + \Delta$ ($\Delta$ `noise`): $E[e_t g_r] =
    \sum_q D(r, q) Z(t, q) + \sum_{s<t} R(t, s) K(s, r)$, $E\, e_t^2 = \sum_q D(t, q) Z(t, q) +
    \sum_{s<t} R(t, s) E[e_t g_s]$ and $K(t, t) = E\, e_t^2 / b$ (b `batch_fraction`).

    Raises:
        ValueError: for another task than regression.

    Accuracy: rounding, 1e-12, in the limit of large d at a fixed number of steps. If training is
    unstable, the path of the theory diverges as well.

    Cost: of order steps^3.

    Source: derived here; the equations are those of Mignacco, Krzakala, Urbani, Zdeborová (2020)
    with momentum and a square loss.

    >>> found = closed_dynamics(ReusedData(sample_ratio=1.5, noise=0.1, steps=5))
    >>> round(float(found.overlap[5]), 6), round(float(found.test_error[5]), 6)
    (0.65541, 0.461655)
    """
    size = system.steps + 1
    alpha, rate, noise = system.sample_ratio, system.learning_rate, system.noise
    kept = 1 - rate * system.weight_decay + system.momentum
    m0, q0 = system.teacher_overlap, system.self_overlap
    zero = jnp.zeros((size, size))
    # sources: the component of the start orthogonal to the teacher, then one at every step
    sources = zero.at[0, 0].set(q0 - m0**2)
    hot = 2 * rate * system.temperature

    def step(state: Any, t: Array) -> tuple[Any, Array]:
        h, d, overlap, correlation, slopes, sources = state
        response = _response(h, rate)
        row = (response[t] @ d).at[t].add(1.0)  # D = 1 + R D
        d = d.at[t].set(row)

        # M_t and C(t, s) for s <= t: w_t depends on the sources up to step t - 1
        # -G_s; the rows that are still empty meet zeros of h[t]
        pull = alpha * jnp.sum(d, axis=1)
        now = h[t, 0] * m0 + rate * h[t, 1:] @ pull[:-1]
        overlap = overlap.at[t].set(now)
        line = now * overlap + h @ (sources @ h[t])
        line = jnp.where(jnp.arange(size) <= t, line, 0.0)
        correlation = correlation.at[t].set(line).at[:, t].set(line)

        # E[e_t g_r], r < t, then E e_t^2
        z = line - now - overlap + 1 + noise
        earlier = jnp.arange(size) < t
        mixed = jnp.where(earlier, d @ z + response[t] @ slopes, 0.0)
        error = row @ z + response[t] @ mixed
        line = mixed.at[t].set(error / system.batch_fraction)
        slopes = slopes.at[t].set(line).at[:, t].set(line)
        covariance = rate**2 * alpha * line
        later = jnp.roll(covariance, 1).at[0].set(0.0)
        sources = sources.at[t + 1].set(later, mode="drop").at[:, t + 1].set(later, mode="drop")
        sources = sources.at[t + 1, t + 1].add(hot, mode="drop")

        before = h[jnp.maximum(t - 1, 0)]  # w_{-1} = w_0
        following = kept * h[t] - system.momentum * before - rate * alpha * row @ h
        following = following.at[t + 1].add(1.0, mode="drop")
        h = h.at[t + 1].set(following, mode="drop")
        return (h, d, overlap, correlation, slopes, sources), error

    empty = (zero.at[0, 0].set(1.0), zero, jnp.zeros(size), zero, zero, sources)
    (h, _, overlap, correlation, _, _), errors = jax.lax.scan(step, empty, jnp.arange(size))
    own = jnp.diagonal(correlation)
    return ClosedPath(
        overlap=overlap,
        self_overlap=own,
        test_error=own - 2 * overlap + 1,
        train_loss=errors / 2,
        correlation=correlation,
        response=_response(h, rate),
        converged=_sound(own),
    )


@theory(check=_enough_samples)
def sampled_dynamics(
    system: ReusedData, *, samples: int = 1000, runs: int = 8, seed: int = 0
) -> SampledPath:
    r"""Overlaps, correlation and response at every step for any task, from sampled examples.

    One example has the fields $h_t = \zeta_t + \sum_{s<t} R(t, s)\, g_s$ with slopes $g_t$ of the
    loss and Gaussian $(\zeta, h^*)$ of covariances C and M; one weight has $v_t = u_t + \sum_{s \le
    t} \Gamma(t, s)\, w_s + G_t w^*$ in the place of the gradient, where ($\alpha$ `sample_ratio`)

    $$ \Gamma(t, s) = \alpha E \frac{d g_t}{d \zeta_s}, \qquad E\, u_t u_s = \alpha E\, g_t g_s,
       \qquad G_t = \alpha E[g_t h^*] - \sum_s \Gamma(t, s) M_s $$

    One causal sweep solves these equations: averages over examples are means over samples, and the
    linear equation of the weights is solved exactly. All random numbers are drawn before the sweep,
    so that results are smooth in the parameters of the system, except in `batch_fraction`, and in
    `noise` where labels are signs.

    Args:
        samples: number of examples that are sampled in a run.
        runs: number of independent runs, whose scatter gives the standard errors.
        seed: seed of the samples.

    Raises:
        ValueError: for fewer samples than Gaussian directions, 2 `steps` + 5, or a single run.

    Accuracy: statistical, with the standard errors of the result, which fall as
    (samples * runs)^(-1/2), and a bias of order 1/samples. For regression with whole batches the
    result is exact to 1e-9.

    Cost: of order samples * runs * steps^3. A derivative in forward mode costs as much; a
    derivative in reverse mode needs memory for samples * runs * steps^2 numbers.

    Source: derived here; equations of Mignacco, Krzakala, Urbani, Zdeborová (2020), Celentano,
    Cheng, Montanari (2021) and Gerbelot et al. (2022).

    >>> system = ReusedData(3.0, 0.5, weight_decay=0.1, task="logistic", steps=3)
    >>> found = sampled_dynamics(system, samples=200, runs=2)
    >>> found.overlap.shape, bool(found.converged)
    ((4,), True)
    """
    paths = _paths(system, samples, runs, seed)
    flat = jax.tree.map(
        lambda leaf: leaf[..., 0, 0], paths._replace(train_loss=paths.train_loss[..., None, None])
    )
    error = _test_error(system, paths)
    series = {
        "overlap": flat.overlap,
        "self_overlap": flat.self_overlap,
        "test_error": error,
        "train_loss": flat.train_loss,
    }
    return SampledPath(
        **_summary(series),
        correlation=jnp.mean(flat.correlation, axis=0),
        response=jnp.mean(flat.response, axis=0),
        converged=_sound(flat.self_overlap),
    )


@theory(check=_enough_samples)
def committee_dynamics(
    system: ReusedCommittee, *, samples: int = 1000, runs: int = 8, seed: int = 0
) -> SampledCommitteePath:
    r"""Overlaps of a committee at every step on re-used data, from sampled examples.

    The equations are those of `sampled_dynamics` with p x p matrices R, C and $\Gamma$ for p
    students: $\Gamma(t, s) = \alpha E\, d g_t / d \zeta_s$ is a matrix of derivatives ($\alpha$
    `sample_ratio`), and M is p x r for r teachers.

    Args:
        samples: number of examples that are sampled in a run.
        runs: number of independent runs, whose scatter gives the standard errors.
        seed: seed of the samples.

    Raises:
        ValueError: for fewer samples than Gaussian directions, 2 p `steps` + p + r + 3, or a single
            run.

    Accuracy: statistical, with the standard errors of the result, and a bias of order 1/samples.

    Source: derived here, as `sampled_dynamics`.

    >>> import numpy as np
    >>> system = ReusedCommittee(4.0, np.diag([0.2, 0.15]), 0.5 * np.eye(2), steps=2)
    >>> committee_dynamics(system, samples=100, runs=2).overlap.shape
    (3, 2, 2)
    """
    paths = _paths(system, samples, runs, seed)
    error = _test_error(system, paths)
    series = {
        "overlap": paths.overlap,
        "self_overlap": paths.self_overlap,
        "test_error": error,
        "train_loss": paths.train_loss,
    }
    return SampledCommitteePath(
        **_summary(series),
        converged=_sound(jnp.einsum("ktaa->kta", paths.self_overlap)),
    )


def _response(h: Array, rate: Any) -> Array:
    """The response R(t, s) = -eta H(t, s + 1), a strictly lower triangular matrix."""
    return -rate * jnp.roll(h, -1, axis=1).at[:, -1].set(0.0)


def _paths(system: ReusedData | ReusedCommittee, samples: int, runs: int, seed: int) -> Path:
    """The path of every run, each from its own random keys."""
    keys = jax.random.split(jax.random.key(seed), runs)
    problem = system.problem
    return jax.vmap(lambda key: causal_sweep(system, problem, key, samples, system.steps))(keys)


def _test_error(system: ReusedData | ReusedCommittee, paths: Path) -> Float[Array, "run time"]:
    return jax.vmap(jax.vmap(system.problem.test_error))(paths.overlap, paths.self_overlap)


def _summary(series: dict[str, Array]) -> dict[str, Array]:
    """Means over runs, and their standard errors under the same names with `_uncertainty`."""
    means = {name: jnp.mean(values, axis=0) for name, values in series.items()}
    errors = {f"{name}_uncertainty": _standard_error(one) for name, one in series.items()}
    return means | errors


def _standard_error(values: Float[Array, "run *dims"]) -> Float[Array, "*dims"]:
    runs = len(values)
    square = jnp.sum((values - jnp.mean(values, axis=0)) ** 2, axis=0) / (runs - 1) / runs
    # The start is the same in every run, so that its standard error and the derivative of this
    # error are 0.
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def _sound(self_overlap: Array) -> Bool[Array, ""]:
    return jnp.all(jnp.isfinite(self_overlap) & (self_overlap < _DIVERGED))
