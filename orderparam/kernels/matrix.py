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
# loop and mirrored behind it: XLA would otherwise compute each entry once more for its mirror.
_FEW = 16
_BYTES = 2**20  # bytes of one temporary for a tile of images: small enough to stay in cache

Matrices = dict[str, tuple[Array, Array]]


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
    return matrices if x2 is not None else _mirrored(matrices)


def _mirrored(matrices: Matrices) -> Matrices:
    """The matrices made exactly symmetric by their upper triangles, with their diagonals."""
    upper = {name: jnp.triu(matrix, 1) for name, (matrix, _) in matrices.items()}
    return {
        name: (upper[name] + upper[name].T + jnp.diag(diagonal), diagonal)
        for name, (_, diagonal) in matrices.items()
    }


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

    def compute(matrices: Matrices, pair: Array) -> tuple[Matrices, None]:
        i, j = pair
        output = covariance(rows[i], columns[j])
        return {
            name: (
                jax.lax.dynamic_update_slice(
                    matrix, getattr(output.cross, name), (i * height, j * width)
                ),
                jax.lax.dynamic_update_slice(diagonal, getattr(output.first, name), (i * height,)),
            )
            for name, (matrix, diagonal) in matrices.items()
        }, None

    shape = (len(rows) * height, len(columns) * width)
    blank = {name: (jnp.zeros(shape), jnp.zeros(shape[0])) for name in names}
    padded, _ = jax.lax.scan(compute, blank, jnp.array(pairs))
    first, second = x1.shape[0], (x1 if x2 is None else x2).shape[0]
    found = {
        name: (matrix[:first, :second], diagonal[:first])
        for name, (matrix, diagonal) in padded.items()
    }
    return found if x2 is not None else _mirrored(found)


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
