r"""Giant steps of a whole layer, and the error of a read-out on a fresh batch.

Given the fields h = W x and z of its examples, the component of a Gaussian batch orthogonal to the
weights and to the teacher is still Gaussian. With Omega = [[Q, M], [M^T, 1]] the covariance of (h,
z), D = E[g (h, z)^T] and N = E[g g^T], one step w_j <- w_j + (1/n) sum g_j x on n = alpha d fresh
examples gives, exactly as d grows,

    M <- M + D_z,        Q <- Q + D_h + D_h^T + D Omega^-1 D^T + N/alpha.

All neurons share the batch, and its fluctuation N/alpha makes their weights parallel. On the square
loss the neurons also interact through the residual. The equations of the matrices Q and M contain
both effects.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.rules import hermite_product
from orderparam.systems.several_steps.model import GiantLayer

# Gauss-Hermite nodes in each direction of a target: exact for polynomials of degree up to 19
_NODES = 20
# moments smaller than this share of the target's power count as zero
_NOTHING = 1e-10


class LayerPath(Result):
    """Overlaps of a layer and the error of its read-out, after 0, 1, ... giant steps.

    Fields:
        test_error: error on new inputs of the best read-out with a constant, E (y - f)^2 without
            label noise (no factor 1/2).
        overlap: M, projections of the neurons' weights on the teacher's directions.
        self_overlap: Q = W W^T.
        test_error_uncertainty: standard error of the test error over the runs.
        overlap_uncertainty: standard errors of the overlaps.
        self_overlap_uncertainty: standard errors of the self-overlaps.
        converged: whether all overlaps are finite.
    """

    test_error: Float[Array, "time"]
    overlap: Float[Array, "time neuron direction"]
    self_overlap: Float[Array, "time neuron other_neuron"]
    test_error_uncertainty: Float[Array, "time"]
    overlap_uncertainty: Float[Array, "time neuron direction"]
    self_overlap_uncertainty: Float[Array, "time neuron other_neuron"]
    converged: Bool[Array, ""]


class HiddenPower(Result):
    """The power of that part of a target which depends on directions that giant steps do not
    reveal.

    Fields:
        bound: mean of Var(f* | P_U z), the part of the target that no read-out of finitely many
            neurons can fit.
        nonlinear_bound: the part of the bound that is not linear in the hidden directions, for
            layers whose width is of the order of the dimension.
        revealed: number of directions in U after 0, 1, ... steps.
    """

    bound: Float[Array, "time"]
    nonlinear_bound: Float[Array, "time"]
    revealed: Float[Array, "time"]


def _enough(system: GiantLayer, samples: int = 40_000, runs: int = 8, seed: int = 0) -> None:
    least = 4 * (len(system.step) + system.teacher.dimension + 1)
    if samples < least:
        raise ValueError(f"samples = {samples}: must be >= {least}, four for each field")
    if runs < 2:
        raise ValueError(f"runs = {runs}: must be >= 2, to have standard errors")
    if seed < 0:
        raise ValueError(f"seed = {seed}: must be >= 0")


@theory(check=_enough)
def layer_error(
    system: GiantLayer, *, samples: int = 40_000, runs: int = 8, seed: int = 0
) -> LayerPath:
    r"""Overlaps of a layer after giant steps on fresh batches, and the error of a new read-out.

    With g the steps of `GiantLayer`, $\Omega$ the covariance of (h, z), $D = E[g (h, z)^T]$ and
    $\alpha$ = `sample_ratio`,

    $$ M \leftarrow M + D_z, \qquad Q \leftarrow Q + D_h + D_h^T + D\, \Omega^{-1} D^T +
       \frac{1}{\alpha} E[g g^T] $$

    from M = 0, Q = 1. The test error is the error of the least-squares regression of the target on
    a constant and the features $\sigma(h_j + b_j)$ under $N(0, \Omega)$. This regression is the
    limit of a read-out that is fitted to many fresh examples for each neuron. Averages are means
    over whitened samples, and the samples are the same at all steps.

    Args:
        samples: number of samples of the fields in each run.
        runs: number of independent runs; their scatter gives the standard errors.
        seed: seed of the samples.

    Raises:
        ValueError: for too few samples, or a single run.

    Accuracy: statistical, given by the fields that end in `_uncertainty`. The averages over samples
    contain $y^2$, whose distribution has heavy tails.

    Source: derived here; the picture is that of Dandi, Krzakala, Loureiro, Pesce, Stephan (2023).

    >>> system = GiantLayer([1.0, -1.0], [0.0, 1.0], steps=1)
    >>> layer_error(system, samples=1000, runs=2).overlap.shape
    (2, 2, 3)
    """
    keys = jax.random.split(jax.random.key(seed), runs)
    paths = jax.lax.map(lambda key: _path(system, key, samples), keys)

    def spread(values: Array) -> Array:
        square = jnp.var(values, axis=0, ddof=1) / runs
        return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)

    sound = jnp.all(jnp.isfinite(paths[2])) & jnp.all(jnp.isfinite(paths[0]))
    errors, overlaps, self_overlaps = paths
    return LayerPath(
        test_error=jnp.mean(errors, axis=0),
        overlap=jnp.mean(overlaps, axis=0),
        self_overlap=jnp.mean(self_overlaps, axis=0),
        test_error_uncertainty=spread(errors),
        overlap_uncertainty=spread(overlaps),
        self_overlap_uncertainty=spread(self_overlaps),
        converged=sound,
    )


@theory(traced=False)
def hidden_power(system: GiantLayer) -> HiddenPower:
    r"""Lower bound on the error after giant steps: the variance of the target given the directions
    that the steps reveal.

    Fresh batches reveal directions one after another, as on a staircase. With $U_t$ the span of the
    directions that are known after t steps,

    $$ U_{t+1} = U_t + \mathrm{span}\, \{ v \perp U_t : E[f^*\, v \cdot z \mid P_{U_t} z] \ne 0 \},
       \qquad E(t) \ge E\, \mathrm{Var}(f^* \mid P_{U_t} z) $$

    for any read-out of a fixed number of neurons as $d \to \infty$. If the number of neurons grows
    with d, the read-out also fits the part of the target that is linear in the hidden directions,
    and the bound is `nonlinear_bound`.

    Accuracy: rounding for polynomials of degree up to 19; for other targets that of 20
    Gauss-Hermite nodes in each direction. The bound assumes that neurons learn every direction that
    the staircase allows, which requires non-zero derivatives of the activation at their biases;
    this is not checked.

    Source: Dandi, Krzakala, Loureiro, Pesce, Stephan (2023), theorem on several steps.

    >>> found = hidden_power(GiantLayer([1.0], [0.5], target="z1 + z1*z2 + z2*z3/2", steps=3))
    >>> [round(float(value), 6) + 0.0 for value in found.bound]
    [2.25, 1.25, 0.25, 0.0]
    """
    directions = system.teacher.dimension
    nodes, weights = hermite_product(_NODES, directions)
    axis = (_NODES,) * directions  # one axis for each direction
    grid, mass = nodes.reshape(*axis, directions), weights.reshape(axis)
    # Rows: first a basis of U, then a basis of its complement.
    axes, spanned = np.eye(directions), 0
    bounds, nonlinear, revealed = [], [], []
    for _ in range(system.steps + 1):
        values = np.asarray(system.teacher(grid @ axes))
        # The conditional means, given the coordinates in U, of f and of f times each coordinate of
        # the complement of U.
        across = tuple(range(spanned, directions))
        given = mass.sum(axis=across)
        inside = (mass * values).sum(axis=across) / given
        pulls = [(mass * values * grid[..., k]).sum(axis=across) / given for k in across]
        moments = np.array([[np.sum(given * one * other) for other in pulls] for one in pulls])
        hidden = np.sum(mass * values**2) - np.sum(given * inside**2)
        bounds.append(max(hidden, 0.0))
        nonlinear.append(max(hidden - np.trace(moments) if across else hidden, 0.0))
        revealed.append(spanned)
        if across:
            power, turns = np.linalg.eigh(moments)
            order = np.argsort(-power)
            axes = np.concatenate([axes[:spanned], turns.T[order] @ axes[spanned:]])
            spanned += int(np.sum(power > _NOTHING * np.sum(mass * values**2)))
    return HiddenPower(
        bound=jnp.asarray(bounds),
        nonlinear_bound=jnp.asarray(nonlinear),
        revealed=jnp.asarray(revealed, jnp.float64),
    )


def _path(system: GiantLayer, key: PRNGKeyArray, samples: int) -> tuple[Array, Array, Array]:
    """Test errors, M and Q along the steps, from one set of samples."""
    neurons, directions = len(system.step), system.teacher.dimension
    normals = jax.random.normal(key, (samples, neurons + directions))
    columns = jnp.concatenate([jnp.ones((samples, 1)), normals], axis=1)
    white = jnp.linalg.qr(columns)[0][:, 1:] * jnp.sqrt(samples)
    z, own = white[:, :directions], white[:, directions:]
    target = system.teacher(z)

    def observe(overlap: Array, self_overlap: Array) -> tuple[Array, Array]:
        across = jnp.linalg.cholesky(self_overlap - overlap @ overlap.T)
        h = z @ overlap.T + own @ across.T
        features = system.activation(h + system.bias)
        return h, least_squares_error(features, target)

    def step(state: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Any]:
        overlap, self_overlap = state
        h, error = observe(overlap, self_overlap)
        residual = system.residual(h, target)
        slopes = system.step * system.activation.derivative(h + system.bias)
        g = residual[:, None] * slopes
        fields = jnp.concatenate([h, z], axis=1)
        moved = g.T @ fields / samples  # D
        square = (g.T @ g + system.noise * slopes.T @ slopes) / samples
        covariance = jnp.block([[self_overlap, overlap], [overlap.T, jnp.eye(directions)]])
        drift = moved @ jnp.linalg.solve(covariance, moved.T)
        along = moved[:, :neurons]
        following = self_overlap + along + along.T + drift + square / system.sample_ratio
        return (overlap + moved[:, neurons:], following), (error, overlap, self_overlap)

    start = (jnp.zeros((neurons, directions)), jnp.eye(neurons))
    end, along = jax.lax.scan(step, start, length=system.steps)
    last = (observe(*end)[1], *end)
    errors, overlaps, squares = (
        jnp.concatenate([rest, final[None]]) for rest, final in zip(along, last)
    )
    return errors, overlaps, squares


def least_squares_error(
    features: Float[Array, "sample feature"], target: Float[Array, "sample"]
) -> Float[Array, ""]:
    """Residual mean square of the regression of a target on a constant and the features: the sum of
    squared residuals divided by their degrees of freedom."""
    samples, count = features.shape
    centred, y = features - jnp.mean(features, axis=0), target - jnp.mean(target)
    gram = centred.T @ centred
    ridge = 1e-13 * jnp.trace(gram) / count * jnp.eye(count)
    weights = jnp.linalg.solve(gram + ridge, centred.T @ y)
    return jnp.sum((y - centred @ weights) ** 2) / (samples - count - 1)
