r"""The tangent kernel of large networks from derivatives in random directions of the parameters.

$\phi_k(x) = \partial_\theta f(x) \cdot v_k$ with $v_k \sim N(0, 1)$ has
$\langle \phi_k(x)\, \phi_k(x') \rangle = K(x, x')$: directions are neurons of a network whose
infinite-width kernel is K, and every estimator of `similarity` for "neurons" applies to them. A
direction costs one forward pass, and neither the kernel nor the Jacobian is formed.
"""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from orderparam.observables.observable import Observed, clocked, jackknifed
from orderparam.observables.similarity import DRAWS, similarity
from orderparam.observables.tangent_kernel import BLOCK, SOURCE, Drift, Model

BATCH = 1000  # examples of one forward pass
MOST_AT_ONCE = 16  # directions that share a pass through the network
FEWEST = 4  # directions
_ENTRIES = 2**24  # of a block of rows of the kernel

Features = Float[np.ndarray, "example direction output"]


def tangent_features(
    model: Model, parameters: Any, inputs: np.ndarray, directions: int = 256, seed: int = 0
) -> Features:
    """Derivatives of the outputs in random directions of the parameters, one forward pass each.

    They are the neurons of `similarity` and `alignment` with the estimand "neurons"; the outputs
    are positions. Two networks need independent directions, other seeds; two times of one network
    the same ones.

    >>> linear = lambda w, x: x @ w
    >>> op.observables.tangent_features(linear, np.ones(3), np.eye(3), 5).shape
    (3, 5, 1)
    """
    batches = [jnp.asarray(inputs[start : start + BATCH]) for start in range(0, len(inputs), BATCH)]
    keys = jax.random.split(jax.random.key(seed), directions)
    count = sum(np.size(leaf) for leaf in jax.tree.leaves(parameters))
    step = max(1, min(MOST_AT_ONCE, BLOCK // (8 * max(count, 1))))
    found = []
    for start in range(0, directions, step):
        drawn = _drawn(parameters, keys[start : start + step])
        moved = [np.asarray(_along(model, parameters, drawn, x), np.float64) for x in batches]
        found.append(np.concatenate(moved, axis=1))
    return np.ascontiguousarray(np.moveaxis(np.concatenate(found), 0, 1))


@eqx.filter_jit
def _drawn(parameters: Any, keys: Any) -> Any:
    """Random directions of the parameters, one for each key."""
    leaves, tree = jax.tree.flatten(parameters)

    def one(key: Any) -> list[Any]:
        return [
            jax.random.normal(part, jnp.shape(leaf), jnp.asarray(leaf).dtype)
            for part, leaf in zip(jax.random.split(key, len(leaves)), leaves)
        ]

    return jax.tree.unflatten(tree, jax.vmap(one)(keys))


@eqx.filter_jit
def _along(model: Model, parameters: Any, directions: Any, x: Any) -> Any:
    """Derivatives of the outputs (direction, example, output): one pass through the network for the
    outputs, and one more for each direction."""

    def one(direction: Any) -> Any:
        moved = jax.jvp(lambda theta: model(theta, x), (parameters,), (direction,))[1]
        return moved.reshape(len(x), -1)

    return jax.vmap(one)(directions)


def feature_drift(initial: Features, trained: Features, *, draws: int = DRAWS) -> Drift:
    r"""The change of the tangent kernel in training, from `tangent_features` of both networks.

    With $\Delta_a = \phi_a^T \phi_a^{T\top} - \phi_a^0 \phi_a^{0\top}$ of direction a, pairs of
    different directions estimate the change without bias,

    $$ \frac{|K_T - K_0|^2}{|K_0|^2} \approx
        \frac{\sum_{a \ne b} \langle \Delta_a, \Delta_b \rangle}
       {\sum_{a \ne b} \langle \phi_a^0 \phi_a^{0\top}, \phi_b^0 \phi_b^{0\top} \rangle} $$

    Args:
        initial, trained: Of the same examples in the same directions.
        draws: Permutations for the null hypothesis of `shape`, 0 for none.

    Raises:
        ValueError: for fewer than 4 directions, and features of other shapes.

    Accuracy: intervals are the jackknife over examples and over directions: the second part is the
        error of the sketch. It is in proportion to the drift itself, as both networks have the
        same directions. Cost: n^2 m operations for n examples and m directions, n m memory.

    Theory: as in `kernel_drift`.

    Source: as in `kernel_drift`; estimator derived here.

    >>> linear = lambda w, x: x @ w
    >>> x = np.random.default_rng(0).normal(size=(20, 4))
    >>> old = op.observables.tangent_features(linear, np.ones(4), x, 32)
    >>> found = op.observables.feature_drift(old, 2**0.5 * old)
    >>> round(float(found.norm.value), 6)
    1.0
    """
    start, end = (np.asarray(one, np.float64) for one in (initial, trained))
    if start.shape != end.shape or start.ndim != 3 or start.shape[1] < FEWEST:
        raise ValueError(
            f"features of shapes {start.shape} and {end.shape}: must be equal, (examples, "
            f"directions, outputs), with at least {FEWEST} directions"
        )
    with clocked() as seconds:
        moved = _square((end, start), (1.0, -1.0))
        total = _square((start,), (1.0,))
        left = {kind: moved[1][kind] / total[1][kind] for kind in ("examples", "neurons")}
        squared = jackknifed("squared drift", moved[0] / total[0], left)
    note = f"{start.shape[1]} random directions"
    low, value, high = (
        math.sqrt(max(one, 0.0)) for one in (squared.low, squared.value, squared.high)
    )
    if not value > 0:
        value, note = math.nan, f"below {high:.2g}; more than {note} are needed"
    norm = Observed(
        "kernel drift", value, low, high, estimand="neurons", source=SOURCE, note=note,
        seconds=seconds[0],
    )  # fmt: skip
    u = similarity(start, end, estimand="neurons", paired=True, draws=draws)
    shape = Observed(
        "kernel drift in shape", 1 - u.value, 1 - u.high, 1 - u.low, u.p_value, u.null,
        estimand="neurons", source=SOURCE, note=note, seconds=u.seconds,
    )  # fmt: skip
    return Drift(norm, shape)


def _square(
    parts: Sequence[Features], signs: Sequence[float]
) -> tuple[float, dict[str, np.ndarray]]:
    """The squared norm of the kernel that is the sum of signs times kernels of features, with equal
    directions left out, and the same without each example and each direction."""
    n, m, c = parts[0].shape
    pairs = np.zeros((m, m))
    for one, sign in zip(parts, signs):
        for other, second in zip(parts, signs):
            cross = one.reshape(n, -1).T @ other.reshape(n, -1)
            pairs += sign * second * np.sum(cross.reshape(m, c, m, c) ** 2, axis=(1, 3))
    np.fill_diagonal(pairs, 0)
    total = pairs.sum()
    # rows of the whole kernel, squared, less what each direction has alone
    rows, own = np.zeros(n), np.zeros(n)
    step = max(1, _ENTRIES // n)
    for start in range(0, n, step):
        block = sum(
            sign * one[start : start + step].reshape(-1, m * c) @ one.reshape(n, -1).T
            for one, sign in zip(parts, signs)
        )
        rows[start : start + step] = np.sum(block**2, axis=1)
        diagonal = np.arange(len(block))
        own[start : start + step] = block[diagonal, start + diagonal] ** 2
    for one, sign in zip(parts, signs):
        for other, second in zip(parts, signs):
            alone = np.einsum("iac,iad->acd", one, other)
            rows -= sign * second * np.einsum("iac,acd,iad->i", one, alone, other, optimize=True)
    itself = sum(sign * np.sum(one**2, axis=2) for one, sign in zip(parts, signs))
    own -= np.sum(itself**2, axis=1)
    left = {
        "examples": (total - 2 * rows + own) / (m * (m - 1)),
        "neurons": (total - 2 * pairs.sum(axis=1)) / ((m - 1) * (m - 2)),
    }
    return total / (m * (m - 1)), left
