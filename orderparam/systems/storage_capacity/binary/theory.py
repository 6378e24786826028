"""Krauth and Mezard's theory of the binary perceptron: the entropy of solutions, and the load at which it vanishes."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian import standard_normal_rule
from orderparam.gaussian.tail import hazard, log_cdf
from orderparam.solve.root import decreasing_root
from orderparam.systems.storage_capacity.binary.model import BinaryPatterns

Number = Float[Array, ""]

_LARGEST = 200.0  # conjugate, where 1 - q is below exp(-100)


class Solutions(Result):
    """entropy (1/N) ln of the number of solutions, overlap q of two of them, and annealed_entropy ln 2 + alpha ln H(kappa), the
    logarithm of the mean number, never below it.

    frozen: the replica-symmetric entropy is negative: there are no solutions, and the true state is frozen, with one step of
    replica symmetry breaking whose states are single couplings (Krauth, Mezard 1989). residual, converged: of the saddle point.
    """

    entropy: Float[Array, ""]
    overlap: Float[Array, ""]
    annealed_entropy: Float[Array, ""]
    frozen: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class BinaryCapacity(Result):
    """capacity alpha_c, where the entropy of solutions vanishes, and their overlap there."""

    capacity: Float[Array, ""]
    overlap: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def solutions(system: BinaryPatterns) -> Solutions:
    """The saddle point of -qh (1 - q)/2 + int Dz ln 2cosh(sqrt(qh) z) + alpha int Dz ln H(u), u = (kappa - sqrt(q) z)/sqrt(1 - q)
    (Krauth, Mezard 1989, eqs. 7 to 9), H(u) = Phi(-u): q = int Dz tanh^2(sqrt(qh) z), qh (1 - q) = alpha int Dz (phi(u)/H(u))^2.
    At given qh both q and alpha follow, and qh alone is searched."""

    margin, load = jnp.asarray(system.margin), jnp.asarray(system.load)

    def equation(log_conjugate: Number, args: tuple[Number, Number]) -> Number:
        load, margin = args
        return jnp.log(load) - jnp.log(_state(jnp.exp(log_conjugate), margin)[1])

    low = jnp.log(load) + 2 * jnp.log(hazard(-margin)) - 2
    root = decreasing_root(equation, low, jnp.maximum(low + 1, jnp.log(_LARGEST)), (load, margin))
    q, _, free, constraint = _state(jnp.exp(root.value), margin)
    entropy = free + load * constraint
    annealed = jnp.log(2.0) + load * log_cdf(-margin)
    return Solutions(entropy, q, annealed, entropy < 0, root.residual, root.converged)


@theory
def binary_capacity(system: BinaryPatterns) -> BinaryCapacity:
    """The load at which the entropy of `solutions` vanishes (Krauth, Mezard 1989), whatever `load` is: 0.8331 without margin, a
    threshold since proved (Ding, Sun 2019; Huang 2024)."""

    def entropy(log_conjugate: Number, margin: Number) -> Number:
        _, load, free, constraint = _state(jnp.exp(log_conjugate), margin)
        return free + load * constraint

    margin = jnp.asarray(system.margin)
    root = decreasing_root(entropy, jnp.log(jnp.asarray(1e-8)), jnp.log(_LARGEST), margin)
    q, load, *_ = _state(jnp.exp(root.value), margin)
    return BinaryCapacity(load, q, root.residual, root.converged)


def _state(conjugate: Number, margin: Number) -> tuple[Number, Number, Number, Number]:
    """q, alpha, the entropy without patterns and what each pattern per input adds to it, at a conjugate qh."""
    root = jnp.sqrt(conjugate)
    z, weight = standard_normal_rule((0.0,), refine=4)
    x = jnp.abs(root * z)
    fade = jnp.exp(-2 * x)
    q = jnp.sum(weight * jnp.tanh(x) ** 2)
    rest = jnp.sum(weight * 4 * fade / (1 + fade) ** 2)  # 1 - q
    free = -conjugate * rest / 2 + jnp.sum(weight * (x + jnp.log1p(fade)))
    z, weight = standard_normal_rule((margin / jnp.sqrt(q),))
    minus = (jnp.sqrt(q) * z - margin) / jnp.sqrt(rest)
    return q, conjugate * rest / jnp.sum(weight * hazard(minus) ** 2), free, jnp.sum(weight * log_cdf(minus))
