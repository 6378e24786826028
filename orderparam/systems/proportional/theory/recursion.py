"""The kernel of a deep network with an order parameter in every layer, and three ways to close the theory.

With K^0 = v_0 x.x'/d and the two-point function k of the activation, layer by layer C^{(l)} = s_l r_l k(C^{(l-1)}), where r_l is
the variance of the weights that leave layer l. The renormalised kernel at the order parameters Q_1 .. Q_L is

    nested    C^{(L)} at s = Q                                          (Pacelli et al. 2023)
    common    Q_1 Q_2 .. Q_L C^{(L)} at s = 1: only the product matters
    linear    prod_l (1 + (Q_l - 1) d/ds_l) C^{(L)} at s = 1: of first order in every layer

They are inequivalent approximations, except at depth one and for activations with k(s a, s c, s b) = s k(a, c, b) (relu, linear).

An activation with a mean m(x) = E phi(h(x)) has a second order parameter kappa_l in every layer, for the direction of the mean
(at depth one: `mean_direction`); nested with it is C^{(l)} = r_l [Q_l (k(C^{(l-1)}) - m m^T) + kappa_l m m^T], `with_means`. The
other two closures treat the mean as part of the kernel, kappa_l = Q_l.
"""

from collections.abc import Callable
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import nearest
from orderparam.gaussian import Activation

Closure = Literal["nested", "common", "linear"]
Scales = Float[Array, "layer"]


def check_closure(closure: str) -> None:
    """Raises `ValueError` for a closure that does not exist."""
    if closure not in get_args(Closure):
        raise ValueError(f"closure = {closure!r} does not exist{nearest(closure, list(get_args(Closure)))}")


class Pairs(eqx.Module):
    """Covariances of one layer between two sets of inputs, and the variances of each: (a, c, b) of all pairs."""

    first: Float[Array, "first"]
    cross: Float[Array, "first second"]
    second: Float[Array, "second"]

    def map(self, rule: Callable[[Array, Array, Array], Array]) -> "Pairs":
        """The same rule (a, c, b) -> covariance for the pairs and for every input with itself."""
        return Pairs(
            rule(self.first, self.first, self.first),
            rule(self.first[:, None], self.cross, self.second[None, :]),
            rule(self.second, self.second, self.second),
        )

    def scaled(self, factor: Float[Array, ""] | float) -> "Pairs":
        """All covariances times a number."""
        return jax.tree.map(lambda x: factor * x, self)


def input_pairs(
    x1: Float[Array, "first dim"], x2: Float[Array, "second dim"], variance: Float[Array, ""]
) -> Pairs:
    """v x.x'/d."""
    scale = variance / x1.shape[-1]
    return Pairs(scale * jnp.sum(x1**2, axis=1), scale * x1 @ x2.T, scale * jnp.sum(x2**2, axis=1))


def with_means(start: Pairs, phi: Activation, variances: Float[Array, "layer"], scales: Scales, kappas: Scales) -> Pairs:
    """The nested kernel at Q_l = `scales` and kappa_l = `kappas` (derived for this package, not in the cited papers)."""
    pairs = start
    for variance, scale, kappa in zip(variances, scales, kappas):
        first, second = phi.mean(pairs.first), phi.mean(pairs.second)
        means = Pairs(first**2, jnp.outer(first, second), second**2)
        kernel = pairs.map(phi.two_point)
        pairs = jax.tree.map(lambda k, m, v=variance, q=scale, d=kappa - scale: v * (q * k + d * m), kernel, means)
    return pairs


def renormalised(
    start: Pairs, phi: Activation, variances: Float[Array, "layer"], scales: Scales, closure: str
) -> Pairs:
    """The kernel at the order parameters `scales`. start: K^0; variances: r_1 .. r_L, the last one that of the read-out."""
    depth = scales.shape[0]

    def nested(scales: list[Float[Array, ""]]) -> Pairs:
        pairs = start
        for variance, scale in zip(variances, scales):
            pairs = pairs.map(phi.two_point).scaled(variance * scale)
        return pairs

    one = jnp.ones(())
    if closure == "nested":
        return nested(list(scales))
    if closure == "common":
        return nested([one] * depth).scaled(jnp.prod(scales))

    def first_order(layers: int, fixed: list[Float[Array, ""]]) -> Pairs:
        """prod_{l < layers} (1 + (Q_l - 1) d/ds_l) of the kernel, the scales above being `fixed`."""
        if layers == 0:
            return nested(fixed)
        value, derivative = jax.jvp(lambda s: first_order(layers - 1, [s, *fixed]), (one,), (scales[layers - 1] - 1,))
        return jax.tree.map(jnp.add, value, derivative)

    # The last layer is a mere factor: 1 + (Q_L - 1) d/ds_L is Q_L.
    return first_order(depth - 1, [scales[-1]])
