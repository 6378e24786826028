"""Even losses of the deviation d = f - y, as formulas, and their averages over Gaussian deviations."""

import ast
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.gaussian.formula import index, parse, switches, value
from orderparam.gaussian.quadrature import standard_normal_rule

_SMALLEST = 1e-300  # a squared deviation whose root has a slope: an even law has one at zero
_PROBES = np.linspace(0.0, 6.0, 121)  # where a loss is looked at, in deviations


@dataclass(frozen=True)
class EvenLoss:
    """A smooth even loss, a formula in z = f - y: "z**2", "2*log(exp(z) + exp(-z))", "2 - 2*exp(-z**2/2)"."""

    formula: str

    def __call__(self, deviation: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        return value(parse(self.formula), jnp.asarray(deviation)[..., None], jnp)

    def stiffness(self, squared_deviation: Float[Array, ""]) -> Float[Array, ""]:
        """d/dQ E l(sqrt(Q) z) = (1/2) E l''(sqrt(Q) z) for z ~ N(0, 1): 1 for the square loss z^2."""
        nodes, weights = standard_normal_rule()
        return weights @ self.second(jnp.sqrt(jnp.maximum(squared_deviation, _SMALLEST)) * nodes) / 2

    def average(self, squared_deviation: Float[Array, ""]) -> Float[Array, ""]:
        """E l(sqrt(Q) z) for z ~ N(0, 1), Q > 0."""
        nodes, weights = standard_normal_rule()
        return weights @ self(jnp.sqrt(squared_deviation) * nodes)

    def second(self, deviation: Float[Array, "point"]) -> Float[Array, "point"]:
        """l''(d)."""
        return jax.vmap(jax.grad(jax.grad(lambda d: jnp.asarray(self(d), float))))(jnp.asarray(deviation))

    def __repr__(self) -> str:
        return self.formula


def even_loss(what: str | EvenLoss) -> EvenLoss:
    """The loss of that formula. Raises `ValueError` for what is no formula in z alone, not smooth, or not even."""
    if isinstance(what, EvenLoss):
        return what
    if not isinstance(what, str):
        raise ValueError("must be a formula in z = f - y, such as 'z**2'")
    tree = parse(what)
    if any(isinstance(node, ast.Name) and (index(node.id) or 0) > 0 for node in ast.walk(tree)):
        raise ValueError("must be a formula in z alone")
    loss = EvenLoss(what)
    if any(True for _ in switches(tree)) or not bool(jnp.all(jnp.isfinite(loss.second(jnp.asarray(_PROBES))))):
        raise ValueError("must be smooth: no abs, sign, relu, step, and no pole")
    if not np.allclose(loss(jnp.asarray(_PROBES)), loss(jnp.asarray(-_PROBES)), rtol=1e-12, atol=1e-300):
        raise ValueError("must be even, l(-z) = l(z)")
    return loss
