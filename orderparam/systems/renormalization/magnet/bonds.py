"""Real-space renormalization of the Ising magnet by moving bonds (Migdal 1975; Kadanoff 1976); exact on the chain."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.renormalization.magnet.model import Bonds

_LARGEST = 100.0  # couplings beyond are infinite: e^-200 of all bonds is broken


class BondFlow(Result):
    """neighbour_coupling: (step,) K after 0, 1, 2, ... steps. length: (step,) b^step, the length that has become one."""

    neighbour_coupling: Float[Array, "step"]
    length: Float[Array, "step"]


class BondPoint(Result):
    """critical_coupling: K*, where K' = K; nu = ln b / ln (dK'/dK) there.

    converged: there is one below 100 (on the chain there is none: d = 1). residual: of ln K' = ln K.
    """

    critical_coupling: Float[Array, ""]
    nu: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def bond_flow(system: Bonds, *, steps: int = 8) -> BondFlow:
    """tanh K' = tanh^b(b^(d-1) K): b^(d-1) bonds are moved into one, b of these in a row are joined. For d = 2, b = 2:
    K' = (1/2) ln cosh 4K; for d = 1 nothing is moved, and it is exact."""

    def step(coupling: Float[Array, ""], _: None) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return scaled(coupling, system.dim, system.scale), coupling

    _, coupling = jax.lax.scan(step, jnp.asarray(system.coupling), length=steps + 1)
    return BondFlow(coupling, system.scale ** jnp.arange(steps + 1.0))


@theory
def bond_point(system: Bonds) -> BondPoint:
    """The fixed point of the recursion and its exponent, whatever the system's coupling."""

    def excess(log_coupling: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        return log_coupling - jnp.log(scaled(jnp.exp(log_coupling), *args))

    args = (jnp.asarray(system.dim), jnp.asarray(system.scale))
    # tanh x < x: the fixed point of K' = (b^(d-1) K)^b lies below
    lowest = -(args[0] - 1) * args[1] * jnp.log(args[1]) / (args[1] - 1) - 1
    root = decreasing_root(excess, lowest, jnp.log(_LARGEST), args)
    coupling = jnp.exp(root.value)
    growth = jax.grad(scaled)(coupling, *args)
    steep = growth > 1
    return BondPoint(
        coupling,
        jnp.log(args[1]) / jnp.log(jnp.where(steep, growth, 2.0)),
        root.residual,
        root.converged & steep & (coupling < 0.99 * _LARGEST),
    )


def scaled(coupling: Float[Array, ""], dim: Float[Array, ""] | float, scale: Float[Array, ""] | float) -> Float[Array, ""]:
    """K' = artanh(tanh^b(b^(d-1) K)), with 1 - tanh^b kept to full accuracy where bonds are strong."""
    together = jnp.minimum(scale ** (dim - 1) * coupling, _LARGEST * 3.5)
    log_power = scale * jnp.log(jnp.tanh(jnp.minimum(together, 1.0)))
    weak = jnp.arctanh(jnp.exp(log_power))
    # tanh x = 1 - 2 q, q = 1/(1 + e^2x)
    log_strong = scale * jnp.log1p(-2 / (1 + jnp.exp(2 * jnp.maximum(together, 1.0))))
    strong = (jnp.log1p(jnp.exp(log_strong)) - jnp.log(-jnp.expm1(log_strong))) / 2
    return jnp.where(together < 1, weak, strong)
