"""State evolution of the elastic net: two unknowns, its error E = |w - w0|^2 / d and its response V.

    A = alpha / (1 + V),  b = A w0 + sqrt(alpha (E + noise)) / (1 + V) z,  w = sign(b) max(|b| - l1, 0) / (A + ridge),
    E = E (w - w0)^2,  V = P(|b| > l1) / (A + ridge)

Bayati, Montanari 2012 (Lasso; arXiv:1008.2581); exact as d grows at n = alpha d.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.fixed_point import fixed_point
from orderparam.systems.generalised_linear.elastic_net.model import ElasticNet
from orderparam.systems.generalised_linear.shrinkage import shrunk

Scalar = Float[Array, ""]


class SparseFit(Result):
    """error: |w - w0|^2 / d. overlap: w.w0/d. support: share of weights that are not zero. test_error: mean (y - f)^2 of new
    examples, noise included; train_error: of training examples."""

    error: Scalar
    overlap: Scalar
    support: Scalar
    test_error: Scalar
    train_error: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class SparseFitTheory(SparseFit):
    """response: V, by how much a prediction follows its label when that example is added."""

    response: Scalar


@theory(differentiable=False)
def elastic_net(system: ElasticNet, *, max_steps: int = 3000) -> SparseFitTheory:
    """By plain iteration; the problem is convex and has one solution. `converged` is False where max_steps were not enough, as
    happens at vanishing penalties and fewer examples than weights."""

    def update(state: tuple[Scalar, Scalar], system: ElasticNet) -> tuple[Scalar, Scalar]:
        error, _, _, response = _weights(system, jnp.exp(state[0]), state[1])
        return jnp.log(error), response

    rho = system.prior.power
    start = (jnp.log(rho), jnp.ones(()))
    solved = fixed_point(update, start, system, tolerance=1e-11, max_steps=max_steps)
    error, overlap, support, response = _weights(system, jnp.exp(solved.value[0]), solved.value[1])
    test_error = error + system.noise
    return SparseFitTheory(
        error=error,
        overlap=overlap,
        support=support,
        test_error=test_error,
        train_error=test_error / (1 + response) ** 2,
        residual=solved.residual,
        converged=solved.converged,
        response=response,
    )


def _weights(system: ElasticNet, error: Scalar, response: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """Error, overlap, support and response."""
    stiffness = system.sample_ratio / (1 + response)
    power = system.sample_ratio * (error + system.noise) / (1 + response) ** 2
    found = shrunk(system.prior, stiffness, power, stiffness, system.l1, system.ridge)
    return found.error, found.overlap, found.support, found.response
