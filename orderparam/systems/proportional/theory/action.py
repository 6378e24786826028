"""One effective action over (place, output): fully connected, convolutional, locally connected, pooled; one and many outputs.

With the renormalised kernel KR of `kernels` and N units or channels,

    F(Q, kappa) = N [ -tr Q (kappa^{-1} - 1) - log det kappa ] + log det(T + KR) + y^T (T + KR)^{-1} y

is stationary (a saddle point) in both (Pacelli et al. 2023, supplement, for one number; matrices were derived for this package).
Where no mean is apart kappa = Q, and F is N [tr Q - log det Q] + .., at its minimum (`majorise`). With G, B of `Response` and
W_IJ = m_I^T A^{-1} m_J - (m_I . a)(m_J . a), the conditions are

    Q = kappa - kappa W kappa / N,      kappa^{-1} = 1 + (G - B) / N.

One order parameter, of one place and output, is found with all other minima of the action in the eigenbasis of the kernel
(`kernels.common_scale`): whichever has the lowest action.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from orderparam.kernels import common_scale
from orderparam.solve.fixed_point import fixed_point
from orderparam.solve.newton import newton_fixed_point
from orderparam.systems.proportional.theory.kernels import Matrix, OnePlace, Places, Response
from orderparam.systems.proportional.theory.majorise import Data, Layers, majorised_step, minimise

_SWEEPS = 3000


class Stationary(eqx.Module):
    """Q, kappa, F there with the value it would have at Q = kappa = 1 without data, the residual, and the evaluations it took."""

    scale: Matrix
    kappa: Matrix
    action: Float[Array, ""]
    constant: Float[Array, ""]
    residual: Float[Array, ""]
    steps: Int[Array, ""]


def stationary(
    kernel: OnePlace | Places, temperature: Float[Array, ""], widths: Float[Array, "layer"], apart: bool
) -> Stationary:
    """The stationary point of the action. apart: whether the mean has its own order parameters; for one hidden layer."""
    lowest = _lowest(kernel, temperature, widths)
    if not apart:
        return lowest
    layers = Layers(widths)

    def step(state: tuple[Matrix, Matrix], _: None) -> tuple[Matrix, Matrix]:
        response = kernel.respond(*state, temperature)
        kappa = majorised_step(state[1], response.spread, response.pull, layers)
        return kappa - kappa @ (response.mean_spread - response.mean_pull) @ kappa / layers.units, kappa

    start = jax.lax.stop_gradient((lowest.scale, lowest.scale))
    few = kernel.size == 1  # unknowns that a Jacobian costs little
    solved = newton_fixed_point(step, start) if few else fixed_point(step, start, max_steps=_SWEEPS)
    scale, kappa = solved.value
    prior = jnp.trace(scale) - jnp.trace(jnp.linalg.solve(kappa, scale)) - jnp.linalg.slogdet(kappa)[1]
    action = layers.units * prior + kernel.respond(scale, kappa, temperature).data
    return Stationary(scale, kappa, action, jnp.zeros(()), solved.residual, solved.steps)


def _lowest(kernel: OnePlace | Places, temperature: Float[Array, ""], widths: Float[Array, "layer"]) -> Stationary:
    """The minimum in Q = kappa, where the mean is part of the kernel."""
    constant = jnp.sum(widths) * kernel.size
    if isinstance(kernel, OnePlace) and kernel.size == 1:
        every = common_scale.minima(kernel.basis.eigenvalues, kernel.basis.power, temperature, widths)
        one = jax.tree.map(lambda x: x[0], every)
        scale = jnp.prod(one.order_parameters)[None, None]
        residual = jnp.where(one.found, one.residual, jnp.inf)
        return Stationary(scale, scale, one.action, constant, residual, jnp.asarray(1))

    def respond(scale: Matrix) -> Data:
        found: Response = kernel.respond(scale, scale, temperature)
        return found.data, found.spread + found.mean_spread, found.pull + found.mean_pull

    found = minimise(respond, jnp.eye(kernel.size), widths)
    return Stationary(found.scale, found.scale, jnp.min(widths) * found.action, constant, found.residual, found.steps)
