r"""The spectrum of the curvature of a loss by the stochastic Lanczos method, without a matrix.

The matrix is the Hessian of the loss L at parameters theta (P numbers), or, of
$L = \ell(f(\theta))$, the Gauss-Newton matrix $J^\top \ell'' J$. From a random unit vector v, m
products with it give a tridiagonal matrix T with eigenvalues $\theta_k$ and eigenvectors $s_k$:

$$ v^\top g(A) v \approx \sum_k (s_{1k})^2 g(\theta_k), \qquad
   \min_i |\lambda_i - \theta_k| \le \beta_m |s_{mk}| . $$

The first is Gauss quadrature, exact for polynomials g up to degree 2m - 1, and its mean over v is
tr g(A) / P; the second is a bound on the distance to the nearest eigenvalue of A. All vectors are
kept and made orthogonal twice, so that no eigenvalue appears twice. Eigenvalues that all
probes resolve are counted once each, with weight 1 / P, and the other weights of a probe are
divided by their sum: the rest of v is a random vector in the orthogonal space.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree
from scipy import stats

from orderparam.observables.observable import LEVEL, Observed, clocked

MEMORY = 2**31  # bytes for the vectors of one probe
FEWEST_PROBES = 3
TOLERANCE = 1e-3  # largest bound of a resolved eigenvalue, in units of the largest eigenvalue
_EXHAUSTED = 1e-10  # fraction of the largest coefficient below which the Krylov space ends
_PADDING: tuple[Literal["edge", "constant"], ...] = ("edge", "constant", "edge")
_SOURCE = "Lanczos 1950; Paige 1972; Ubaru, Chen and Saad 2017"


@dataclass(frozen=True)
class CurvatureSpectrum:
    """The spectrum of P eigenvalues, from some probes of some steps each.

    largest, smallest: eigenvalues; an eigenvalue of the matrix certainly lies between low and high.
    trace: with Student's interval over probes. nodes, weights: those of the quadrature, (probe,
    step); the weights of a probe sum to 1. residuals: bounds of the nodes. parameters: P. steps:
    the number of steps made before memory or the Krylov space ended. converged: the bound of
    `largest` is below 1 % of it.
    """

    largest: Observed
    smallest: Observed
    trace: Observed
    nodes: Float[np.ndarray, "probe step"]
    weights: Float[np.ndarray, "probe step"]
    residuals: Float[np.ndarray, "probe step"]
    parameters: int
    steps: int
    converged: bool

    def count(self, low: float, high: float = math.inf) -> Observed:
        """The number of eigenvalues in [low, high], with Student's interval over probes.

        Isolated eigenvalues that all probes resolve are counted without error, a multiple one as
        one; the quadrature smears others over the distance between its nodes.
        """
        inside = (self.nodes >= low) & (self.nodes <= high)
        found = self.parameters * np.sum(self.weights * inside, axis=1)
        return _over_probes(f"eigenvalues in [{low:g}, {high:g}]", found)

    def density(
        self, at: Float[np.ndarray, "point"], smoothing: float
    ) -> tuple[Float[np.ndarray, "point"], Float[np.ndarray, "point"]]:
        """The density of eigenvalues, smeared by a Gaussian of this standard deviation, and its
        standard error over probes. It integrates to 1."""
        if not smoothing > 0:
            raise ValueError(f"smoothing = {smoothing:g}: must be > 0, in units of the eigenvalues")
        kernel = stats.norm.pdf(np.asarray(at)[:, None, None], self.nodes, smoothing)
        each = np.sum(kernel * self.weights, axis=2)
        return each.mean(axis=1), each.std(axis=1, ddof=1) / math.sqrt(each.shape[1])

    def outliers(self, tolerance: float = TOLERANCE) -> list[Observed]:
        """Eigenvalues that every probe found at the same place, from the largest: those whose bound
        is below this fraction of the largest eigenvalue. A bulk has none."""
        places = _alike(self.nodes, self.weights, self.residuals, tolerance)
        return [
            _bounded("isolated eigenvalue", self.nodes[0, k], self.residuals[0, k])
            for k in places[:, 0]
        ]


def curvature(
    loss: Callable[..., Float[Array, ""]],
    parameters: PyTree,
    *,
    model: Callable[[PyTree], PyTree] | None = None,
    steps: int = 40,
    probes: int = 8,
    seed: int = 0,
) -> CurvatureSpectrum:
    r"""The spectrum of the Hessian, or of the Gauss-Newton matrix, of a loss.

    $$ \rho(\lambda) = \frac1P \sum_i \delta(\lambda - \lambda_i) . $$

    Args:
        loss: A function of the parameters; with `model`, of the model's outputs.
        parameters: A pytree of P real numbers.
        model: A function of the parameters. With it the matrix is $J^\top \ell'' J$, with J the
            derivative of the outputs; without it, the Hessian.
        steps: Products with the matrix for each probe. At most P are made. Where the vectors
            would exceed 2 GiB, there are fewer, and `steps` of the result says how many.
        probes: Random vectors, at least 3; their scatter gives the errors.
        seed: Seed of the random vectors.

    Returns:
        A `CurvatureSpectrum`. There is no null hypothesis: compare with the parameters before
        training.

    Raises:
        ValueError: for parameters that are not real numbers, a loss that is not a finite number,
            fewer than 3 probes or 2 steps.

    Accuracy: with P steps every eigenvalue is exact to rounding. Below that, an eigenvalue apart
        from the others is found first, and the edge of a bulk is approached from inside. Cost:
        steps x probes products, each that of two to four gradients, and steps x P x 8 bytes.

    Source: Lanczos 1950; Paige 1972 (the bound); Ubaru, Chen and Saad 2017 (the density);
        Martens 2010 (Gauss-Newton products).

    >>> import jax.numpy as jnp
    >>> found = curvature(lambda w: jnp.sum(jnp.arange(1.0, 6.0) * w**2) / 2, jnp.ones(5))
    >>> round(found.largest.value, 9), round(found.smallest.value, 9), round(found.trace.value)
    (5.0, 1.0, 15)
    """
    if probes < FEWEST_PROBES:
        raise ValueError(f"probes = {probes}: must be at least {FEWEST_PROBES}")
    if steps < 2:
        raise ValueError(f"steps = {steps}: must be at least 2")
    flat, unravel = ravel_pytree(parameters)
    if not flat.size or not jnp.issubdtype(flat.dtype, jnp.floating):
        raise ValueError("parameters: must be real numbers, at least one")
    flat = flat.astype(jnp.float64)
    value = loss(unravel(flat)) if model is None else loss(model(unravel(flat)))
    if jnp.ndim(value) or not bool(jnp.isfinite(value)):
        raise ValueError(f"the loss is {value}: must be one finite number")
    wanted = max(2, min(steps, flat.size, MEMORY // (8 * flat.size)))

    def product(vector: Array) -> Array:
        if model is None:
            gradient = jax.grad(lambda w: loss(unravel(w)))
            return jax.jvp(gradient, (flat,), (vector,))[1]
        outputs, moved = jax.jvp(lambda w: model(unravel(w)), (flat,), (vector,))
        curved = jax.jvp(jax.grad(loss), (outputs,), (moved,))[1]
        return jax.vjp(lambda w: model(unravel(w)), flat)[1](curved)[0]

    run = jax.jit(lambda key: _lanczos(product, flat.size, min(wanted, flat.size), key))
    with clocked() as seconds:
        found = [
            _ritz(*map(np.asarray, run(key)))
            for key in jax.random.split(jax.random.key(seed), probes)
        ]
    longest = max(len(nodes) for nodes, _, _ in found)
    nodes, weights, residuals = (
        np.stack([np.pad(one[k], (0, longest - len(one[k])), mode) for one in found])
        for k, mode in enumerate(_PADDING)
    )
    # otherwise the Krylov space ended because of multiple eigenvalues
    if longest == min(wanted, flat.size):
        weights = _counted(nodes, weights, residuals, flat.size)
    edges = []
    for name, pick in (("largest", np.argmax), ("smallest", np.argmin)):
        place = np.unravel_index(int(pick(nodes)), nodes.shape)
        edges.append(
            _bounded(f"{name} curvature", float(nodes[place]), float(residuals[place]), seconds[0])
        )
    trace = _over_probes("trace of the curvature", flat.size * np.sum(weights * nodes, axis=1))
    bound = edges[0].high - edges[0].value
    converged = bound <= 0.01 * max(abs(edges[0].value), np.finfo(float).tiny)
    return CurvatureSpectrum(
        edges[0], edges[1], trace, nodes, weights, residuals, flat.size, longest, bool(converged)
    )


def _lanczos(
    product: Callable[[Array], Array], size: int, steps: int, key: Array
) -> tuple[Array, Array]:
    """Diagonal and couplings of T; a coupling 0 ends the Krylov space."""
    start = jax.random.normal(key, (size,))
    vectors = jnp.zeros((steps, size)).at[0].set(start / jnp.linalg.norm(start))

    def step(vectors: Array, k: Array) -> tuple[Array, tuple[Array, Array]]:
        image = product(vectors[k])
        diagonal = vectors[k] @ image
        for _ in range(2):
            image = image - vectors.T @ (vectors @ image)
        coupling = jnp.linalg.norm(image)
        following = image / jnp.where(coupling > 0, coupling, 1.0)
        return vectors.at[k + 1].set(following, mode="drop"), (diagonal, coupling)

    return jax.lax.scan(step, vectors, jnp.arange(steps))[1]


def _ritz(diagonal: np.ndarray, couplings: np.ndarray) -> tuple[np.ndarray, ...]:
    """Nodes, weights and bounds, up to where the Krylov space ends."""
    scale = max(np.max(np.abs(diagonal)), np.max(couplings), np.finfo(float).tiny)
    ended = np.flatnonzero(couplings <= _EXHAUSTED * scale)
    steps = int(ended[0]) + 1 if len(ended) else len(diagonal)
    above = np.diag(couplings[: steps - 1], 1)
    nodes, vectors = np.linalg.eigh(np.diag(diagonal[:steps]) + above + above.T)
    rounding = np.finfo(float).eps * scale * steps
    return nodes, vectors[0] ** 2, couplings[steps - 1] * np.abs(vectors[-1]) + rounding


def _alike(
    nodes: np.ndarray, weights: np.ndarray, residuals: np.ndarray, tolerance: float
) -> np.ndarray:
    """The place of each eigenvalue that all probes resolved in the list of every probe, from the
    largest."""
    scale = tolerance * np.max(np.abs(nodes))
    resolved = (residuals <= scale) & (weights > 1e-14)
    found = []
    for k in np.flatnonzero(resolved[0])[::-1]:
        distance = np.where(resolved, np.abs(nodes - nodes[0, k]), np.inf)
        if np.all(distance.min(axis=1) <= 2 * scale):
            found.append(distance.argmin(axis=1))
    return np.array(found, int).reshape(-1, len(nodes))


def _counted(
    nodes: np.ndarray, weights: np.ndarray, residuals: np.ndarray, size: int
) -> np.ndarray:
    """The weights with 1 / P for each isolated eigenvalue. P times the weight of a simple
    eigenvalue is a squared Gaussian; a far larger weight belongs to a multiple eigenvalue or a
    bulk, and stays as it is."""
    most = stats.chi2.ppf(0.999, len(nodes))
    probes = np.arange(len(nodes))
    single = np.zeros(nodes.shape, bool)
    for places in _alike(nodes, weights, residuals, TOLERANCE):
        if size * weights[probes, places].sum() <= most:
            single[probes, places] = True
    rest = np.where(single, 0.0, weights)
    whole = rest.sum(axis=1, keepdims=True)
    left = 1 - single.sum(axis=1, keepdims=True) / size
    return np.where(single, 1 / size, rest * left / np.where(whole > 0, whole, 1.0))


def _bounded(name: str, value: float, bound: float, seconds: float = 0.0) -> Observed:
    return Observed(
        name,
        float(value),
        float(value - bound),
        float(value + bound),
        estimand="entries",
        source=_SOURCE,
        seconds=seconds,
        note="the interval holds an eigenvalue for certain",
    )


def _over_probes(name: str, values: np.ndarray) -> Observed:
    half = stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * stats.sem(values)
    mean = float(np.mean(values))
    return Observed(name, mean, mean - half, mean + half, estimand="entries", source=_SOURCE)
