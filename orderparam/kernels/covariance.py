"""The second moments of one layer over pairs of inputs: the quantities that an infinitely wide
network propagates instead of activations.

In the infinite-width limit the channels of every layer are independent draws of one Gaussian
process over inputs and pixels (Neal 1996; Lee et al. 2018; Novak et al. 2019; Garriga-Alonso et al.
2019). A network is therefore a chain of maps on

    K_ab(x, x') = E[z_a(x) z_a'(x')]
        the covariance of one channel at pixel a of x and pixel b of x' (NNGP)
    Theta_ab(x, x') = sum_theta dz_a(x)/dtheta dz_b(x')/dtheta
        (tangent kernel; Jacot et al. 2018)

Vector inputs have no pixels. Where only equal pixels a = b are needed (a flattened read-out) only
those are stored.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from orderparam.core.result import Result

Parametrization = Literal["ntk", "standard"]


class Kernels(Result):
    """Kernel matrices of an infinitely wide network's output between `first` inputs x1 and `second`
    inputs x2.

    nngp: K(x, x') = E f(x) f(x') over the prior, per output. ntk: Theta(x, x'), the tangent kernel,
    per output. nngp_diagonal, ntk_diagonal: K(x, x) and Theta(x, x) of x1, from their own recursion
    (the prior variance of f(x)).
    """

    nngp: Float[Array, "first second"]
    ntk: Float[Array, "first second"]
    nngp_diagonal: Float[Array, "first"]
    ntk_diagonal: Float[Array, "first"]


class Moments(eqx.Module):
    """K and Theta over one set of pairs; the axes are (*pairs, *grid), or (*pairs, *grid, *grid)
    with pixel pairs."""

    nngp: Float[Array, "..."]
    ntk: Float[Array, "..."]


class Covariance(eqx.Module):
    """K and Theta of one layer, for pairs (x1, x2) and for every input with itself.

    cross: pairs (x1, x2), axes (n1, n2, ...). first, second: x1 with itself and x2 with itself,
    axes (n, ...). The self-moments are never read from the matrix: they follow a separate
    recursion, so that K(x, x) is exact. channels: number of channels of the layer (the fan-in of
    the next one), None where it is not fixed. grid: shape of the pixel grid, () for vectors.
    pixel_pairs: True if all pairs of pixels are stored. gaussian: True if the channels are
    Gaussian, as a nonlinearity requires.
    """

    cross: Moments
    first: Moments
    second: Moments
    channels: Num[Array, ""] | int | None
    grid: tuple[int, ...] = eqx.field(static=True)
    pixel_pairs: bool = eqx.field(static=True)
    gaussian: bool = eqx.field(static=True)
    parametrization: Parametrization = eqx.field(static=True)

    def map(self, rule: Callable[[Moments], Moments], **changes: Any) -> "Covariance":
        """The covariance after a linear rule acts on the cross-moments and the self-moments;
        `changes` are new values of other fields."""
        return Covariance(
            rule(self.cross), rule(self.first), rule(self.second), **{**self._fields(), **changes}
        )

    def pairwise(
        self, rule: Callable[[Array, Moments, Array], Moments], **changes: Any
    ) -> "Covariance":
        """The covariance after a rule acts on each entry, given also the two variances K_aa(x, x)
        and K_bb(x', x') of the entry's pixels."""
        ones = (1,) * len(self.grid) if self.pixel_pairs else ()
        variance_1, variance_2 = self._variances(self.first), self._variances(self.second)

        def at_a(variance: Array) -> Array:
            return variance.reshape(*variance.shape, *ones)

        def at_b(variance: Array) -> Array:
            return variance.reshape(variance.shape[0], *ones, *variance.shape[1:])

        moments = (
            rule(at_a(variance_1)[:, None], self.cross, at_b(variance_2)[None]),
            rule(at_a(variance_1), self.first, at_b(variance_1)),
            rule(at_a(variance_2), self.second, at_b(variance_2)),
        )
        return Covariance(*moments, **{**self._fields(), **changes})

    def _variances(self, moments: Moments) -> Float[Array, "inputs *grid"]:
        return equal_pixels(moments.nngp, self.grid) if self.pixel_pairs else moments.nngp

    def _fields(self) -> dict[str, Any]:
        names = ("channels", "grid", "pixel_pairs", "gaussian", "parametrization")
        return {name: getattr(self, name) for name in names}

    def __add__(self, other: "Covariance") -> "Covariance":
        """Covariance of the sum of two layers that are uncorrelated."""
        if self.grid != other.grid:
            raise ValueError(
                f"layers on different grids {self.grid} and {other.grid} cannot be added"
            )
        moments = (
            jax.tree.map(jnp.add, getattr(self, name), getattr(other, name))
            for name in ("cross", "first", "second")
        )
        channels = other.channels if self.channels is None else self.channels
        return Covariance(
            *moments,
            **{
                **self._fields(),
                "channels": channels,
                "gaussian": self.gaussian and other.gaussian,
            },
        )

    def equal_pixels(self) -> "Covariance":
        """The covariance restricted to equal pixels."""
        if not self.pixel_pairs:
            return self
        return self.map(
            lambda m: Moments(equal_pixels(m.nngp, self.grid), equal_pixels(m.ntk, self.grid)),
            pixel_pairs=False,
        )

    def independent_pixels(self) -> "Covariance":
        """The covariance between all pairs of pixels, when different pixels are independent: zero
        for a != b."""
        return self.map(
            lambda m: Moments(_on_diagonal(m.nngp, self.grid), _on_diagonal(m.ntk, self.grid)),
            pixel_pairs=True,
        )

    def pixel_axes(self, values: Float[Array, "..."]) -> tuple[int, ...]:
        """First axis of every grid in an array of moments: one grid, or two with pixel pairs."""
        dims = len(self.grid)
        return (
            (values.ndim - 2 * dims, values.ndim - dims)
            if self.pixel_pairs
            else (values.ndim - dims,)
        )


def equal_pixels(values: Float[Array, "..."], grid: tuple[int, ...]) -> Float[Array, "..."]:
    """(..., *grid, *grid) -> (..., *grid): the entries a = b."""
    leading = values.shape[: values.ndim - 2 * len(grid)]
    pixels = math.prod(grid)
    flat = values.reshape(*leading, pixels, pixels)
    return jnp.diagonal(flat, axis1=-2, axis2=-1).reshape(*leading, *grid)


def _on_diagonal(values: Float[Array, "..."], grid: tuple[int, ...]) -> Float[Array, "..."]:
    """(..., *grid) -> (..., *grid, *grid): the values at a = b, zero elsewhere."""
    pixels = math.prod(grid)
    flat = values.reshape(*values.shape[: values.ndim - len(grid)], pixels)
    return (flat[..., None] * jnp.eye(pixels)).reshape(*values.shape, *grid)


def input_covariance(
    x1: Float[Array, "first *grid channel"],
    x2: Float[Array, "second *grid channel"] | None,
    pixel_pairs: bool,
    parametrization: Parametrization,
) -> Covariance:
    """K_ab(x, x') = (1/C) sum_c x_ac x'_bc of the inputs themselves (C input channels; C = d for
    vectors); Theta = 0."""
    other = x1 if x2 is None else x2
    channels = x1.shape[-1]
    grid = x1.shape[1:-1]
    left, right = "abcd"[: len(grid)], "efgh"[: len(grid)] if pixel_pairs else "abcd"[: len(grid)]
    both = left + right if pixel_pairs else left
    cross = jnp.einsum(f"m{left}z,n{right}z->mn{both}", x1, other) / channels

    def own(x: Float[Array, "inputs *grid channel"]) -> Moments:
        moments = jnp.einsum(f"m{left}z,m{right}z->m{both}", x, x) / channels
        return Moments(moments, jnp.zeros_like(moments))

    return Covariance(
        Moments(cross, jnp.zeros_like(cross)),
        own(x1),
        own(other),
        channels,
        grid,
        pixel_pairs,
        False,
        parametrization,
    )
