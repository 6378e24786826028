"""Kernel matrices assembled tile by tile: each pair of inputs once, in a bounded amount of
memory."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.kernels.covariance import Covariance

_TILE = 256  # rows of a tile of vectors: a few temporaries of this size stay in cache
# A symmetric matrix of more rows than this is made of at least two tiles. They are computed in a
# loop, a step before they are mirrored: otherwise XLA computes each entry again for its mirror.
_FEW = 16
_BYTES = 2**20  # bytes of one temporary for a tile of images: small enough to stay in cache

Matrices = dict[str, tuple[Array, Array]]
Tile = tuple[Array, Array, Array, Array]  # matrix, diagonal, and what the last step adds to both


def tile_size(x: Float[Array, "example *grid channel"], pixel_pairs: bool) -> int:
    """Rows of a tile, such that a temporary with all pixels (or pairs of pixels) of all pairs of
    inputs stays small."""
    pixels = math.prod(x.shape[1:-1])
    entries = pixels**2 if pixel_pairs else pixels
    return max(1, min(_TILE, math.isqrt(_BYTES // (8 * entries))))


@eqx.filter_jit
def kernel_matrices(
    covariance: Callable[[Array, Array | None], Covariance],
    x1: Float[Array, "first *input"],
    x2: Float[Array, "second *input"] | None,
    tile: int,
    names: tuple[str, ...],
) -> Matrices:
    """The requested kernel matrices: name ("nngp", "ntk") -> matrix and diagonal for x1; others are
    not computed.

    covariance: inputs -> output covariance of an architecture. x2=None means x1 against itself:
    tiles above the diagonal are computed and those below mirrored, so that the matrix is exactly
    symmetric; its diagonal comes from the one-point recursion.
    """
    if x2 is None:
        tile = min(tile, max(_FEW, -(-x1.shape[0] // 2)))
    if max(x1.shape[0], 0 if x2 is None else x2.shape[0]) > tile:
        return _tiled(covariance, x1, x2, tile, names)
    output = covariance(x1, x2)
    matrices = {name: (getattr(output.cross, name), getattr(output.first, name)) for name in names}
    if x2 is not None:
        return matrices
    return {name: (_mirrored(*moments), moments[1]) for name, moments in matrices.items()}


def _mirrored(
    matrix: Float[Array, "example example"], diagonal: Float[Array, "example"]
) -> Float[Array, "example example"]:
    """The matrix made exactly symmetric by its upper triangle, with this diagonal."""
    upper = jnp.triu(matrix, 1)
    return upper + upper.T + jnp.diag(diagonal)


def _tiled(
    covariance: Callable[[Array, Array | None], Covariance],
    x1: Array,
    x2: Array | None,
    tile: int,
    names: tuple[str, ...],
) -> Matrices:
    rows = _blocks(x1, tile)
    columns = rows if x2 is None else _blocks(x2, tile)
    height, width = rows.shape[1], columns.shape[1]
    pairs = [(i, j) for i in range(len(rows)) for j in range(i if x2 is None else 0, len(columns))]

    def written(matrix: Array, values: Array, own: Array, pair: Array) -> Array:
        i, j = pair
        if x2 is None:
            values = jnp.where(i == j, _mirrored(values, own), values)
            matrix = jax.lax.dynamic_update_slice(matrix, values.T, (j * width, i * height))
        return jax.lax.dynamic_update_slice(matrix, values, (i * height, j * width))

    # Each step writes the tile of the step before. XLA would compute a tile that is written in its
    # own step once more, entry by entry, for each place where it is written.
    def step(found: dict[str, Tile], pair: tuple[Array, Array]) -> tuple[dict[str, Tile], None]:
        before, here = pair
        output = covariance(rows[here[0]], columns[here[1]])
        return {
            name: (
                written(matrix, values, own, before),
                jax.lax.dynamic_update_slice(diagonal, own, (before[0] * height,)),
                getattr(output.cross, name),
                getattr(output.first, name),
            )
            for name, (matrix, diagonal, values, own) in found.items()
        }, None

    blank = {
        name: (
            jnp.zeros((len(rows) * height, len(columns) * width)),
            jnp.zeros(len(rows) * height),
            jnp.zeros((height, width)),
            jnp.zeros(height),
        )
        for name in names
    }
    places = jnp.array(pairs)
    # The first step writes zeros where the second one writes the first tile.
    found, _ = jax.lax.scan(step, blank, (jnp.concatenate([places[:1], places[:-1]]), places))
    first, second = x1.shape[0], (x1 if x2 is None else x2).shape[0]
    return {
        name: (
            written(matrix, values, own, places[-1])[:first, :second],
            jax.lax.dynamic_update_slice(diagonal, own, (places[-1][0] * height,))[:first],
        )
        for name, (matrix, diagonal, values, own) in found.items()
    }


def _blocks(x: Float[Array, "example *input"], tile: int) -> Float[Array, "block tile *input"]:
    """The examples in blocks of equal size, at most `tile`; the last one is filled up with copies
    of the last example."""
    count = -(-x.shape[0] // tile)
    size = -(-x.shape[0] // count)
    missing = count * size - x.shape[0]
    padded = (
        jnp.concatenate([x, jnp.broadcast_to(x[-1:], (missing, *x.shape[1:]))]) if missing else x
    )
    return padded.reshape(count, size, *x.shape[1:])
