"""The time in which one neuron of a network that has not specialised crosses its barrier."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.fields import is_number
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.kernel_adaptation.network import HiddenLayer
from orderparam.systems.kernel_adaptation.ridge import FixedRidge, effective
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import ACCURACY
from orderparam.systems.kernel_adaptation.two_layers.model import ScaledNetwork, TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.shares import (
    SETTLED,
    HeldNetwork,
    first_minimum,
    held_network,
)

# In units of the prior, u = rho / sqrt(v/d), the hidden weights of one neuron and its read-out a
# obey
#
#     du = -r dU/du dt + sqrt(2r) dB,   da = -dU/da dt + sqrt(2) dB',
#     U = |u|^2/2 + a^2/2 - a g(w),     g = sqrt(s/N) tau . m(w)
#
# with r the rate of the hidden weights over that of the read-out, and one unit of time the
# relaxation time of the read-out under its weight decay alone. The field tau is that of a network
# that is held at |rho| < b. Over a and w_perp the density exp(-U) is exp(-V(rho)) = p(rho). If both
# follow rho at once, rho diffuses in V with the constant r v/d, and its mean first-passage time
# from 0 to +-c is the integral of `escape_time` (Gardiner, Handbook of Stochastic Methods, section
# 5.2.7). As trial function of rho alone it gives a lower bound on the time. If they take time,
# neurons cross back. Near the top of the barrier U is quadratic in u along w_*, in x = |w_perp| and
# in a, with the Hessian H, and with the rates R = diag(r, r, 1) a deviation grows as the negative
# eigenvalue -lambda of R H says (Langer 1969). The factor of the rate is
#
#     kappa = lambda / (r omega^2),   -omega^2 = H_uu - H_u. (H_..)^{-1} H_.u  over x and a.
#
# Derived here for the neurons of a network.


_NEWTON = 20


class EscapeTime(Result):
    """The mean time in which one neuron of a network that has not specialised crosses its barrier.

    Fields:
        barrier: log p(0) - log p(b) with b the first minimum of the density from the centre, in
            units of the temperature; infinite where the density falls everywhere.
        border: b.
        crossed: the position c beyond b at which p(c) = p(0); a neuron there has crossed.
        time: mean time from the centre to +-c; infinite where there is no such position.
        kramers_time: its limit for high barriers.
        recrossing: factor kappa <= 1 of the rate, because neurons cross back.
        residual: residual of the equations of the field, divided by |y|.
        converged: whether they were solved, the border stayed in the last round, and the centre is
            a maximum of the density before neurons cross.
    """

    barrier: Float[Array, ""]
    border: Float[Array, ""]
    crossed: Float[Array, ""]
    time: Float[Array, ""]
    kramers_time: Float[Array, ""]
    recrossing: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def _check(
    system: TwoLayerNetwork | ScaledNetwork,
    hidden_rate: float = 1.0,
    **_: object,
) -> None:
    if is_number(hidden_rate) and not 0 < hidden_rate < math.inf:
        raise ValueError(f"hidden_rate = {hidden_rate}: must be finite and > 0")


@theory(check=_check, differentiable=False)
def escape_time(
    system: TwoLayerNetwork | ScaledNetwork,
    *,
    hidden_rate: float = 1.0,
    ridge_kind: FixedRidge = "effective",
) -> EscapeTime:
    r"""Mean time in which one neuron of a network that has not specialised crosses its barrier.

    $$ t = \frac{d}{r v \kappa} \int_0^c dy\, \frac{1}{p(y)} \int_0^y dz\, p(z), \qquad
       t_{\mathrm{Kramers}} = \frac{\pi d}{r v \kappa}\,
       \frac{p(0) / p(b)}{\sqrt{V''(0)\, |V''(b)|}}, \qquad V = -\log p $$

    with p(rho) the density of `unspecialised_network`, b its first minimum, c > b where p(c) =
    p(0), v the `weight_variance` and r the `hidden_rate`. The factor $\kappa \le 1$ of Langer
    counts neurons that cross back because read-out and transverse weights follow rho with a delay;
    it is 1 for $r \to 0$ and many inputs. One unit of time is the relaxation time of the read-out
    under its weight decay alone, as in `langevin_training`.

    Args:
        hidden_rate: rate r > 0 at which weight decay alone acts on the hidden weights, over that of
            the read-out. Default 1, every layer with its own learning rate, as in
            `langevin_training`; one learning rate for all weights, as in plain gradient descent, is
            r = (d / v) / (N / s).
        ridge_kind: "effective" (default) or "bare", T/n, as for training on the population loss.

    Raises:
        ValueError: for a rate that is not finite and positive.

    Accuracy: the integrals to 1e-4. The time is exact where read-out and w_perp follow rho at once,
    for r << 1 and many inputs; the factor of Langer is the limit of high barriers. At d = 100 and
    r = 0.1 neurons agree within 10 % at barriers from 1 to 4 (`escape-times`).

    Source: Kramers (1940) and Langer (1969) for the rates; the potential is derived here from the
    action of Rubin, Seroussi, Ringel (2024).

    >>> from orderparam.systems.kernel_adaptation import TwoLayerNetwork, hermite_target
    >>> cubic = hermite_target({3: 1.0}, normalised=True)
    >>> network = TwoLayerNetwork(50, 80, 400, 0.055, cubic, readout_variance=0.04)
    >>> found = escape_time(network, hidden_rate=0.025)
    >>> round(float(found.barrier), 1)
    3.6
    """
    layer = system.hidden
    lam = effective(layer) if ridge_kind == "effective" else layer.ridge
    held = held_network(layer, lam)
    rho, log_density, _ = held.free.along
    # The nodes are uniform in s with rho = c sinh(4s).
    step, c = 1 / (rho.shape[0] - 1), rho[-1] / math.sinh(4)
    slope = 4 * jnp.sqrt(rho**2 + c**2)
    border, barrier, centred = first_minimum(rho, log_density)
    at = jnp.clip(jnp.searchsorted(rho, border), 1, rho.shape[0] - 2)
    crossed = _risen_again(rho, log_density, at, barrier)
    exists = jnp.isfinite(border) & jnp.isfinite(crossed)
    # densities relative to that at b, so that their inverse stays finite
    relative = jnp.clip(log_density - log_density[at], -1.0, jnp.where(exists, barrier, 1.0) + 1.0)
    inner = _cumulative(jnp.exp(relative) * slope, step)
    passage = _cumulative(jnp.exp(-relative) * slope * inner, step)
    diffusion = hidden_rate * layer.scale**2
    bend = _bend(log_density, at, step, slope, rho)
    curvature = _bend(log_density, jnp.asarray(0), step, slope, rho)
    recrossing = _recrossing(held, layer, border, hidden_rate)
    time = jnp.interp(crossed, rho, passage) / (diffusion * recrossing)
    kramers = jnp.pi * jnp.exp(barrier) / jnp.sqrt(jnp.abs(bend * curvature))
    missed = held.rule.density(held.tau).derivatives[1] + lam * held.tau - layer.y
    residual = jnp.max(jnp.abs(missed)) / layer.size
    settled = (held.border == held.before) | (
        jnp.abs(held.border - held.before) < SETTLED * held.border
    )
    solved = settled & (residual < ACCURACY) & held.free.resolved
    return EscapeTime(
        barrier=barrier,
        border=border,
        crossed=crossed,
        time=jnp.where(exists, time, jnp.inf),
        kramers_time=jnp.where(exists, kramers / (diffusion * recrossing), jnp.inf),
        recrossing=jnp.where(exists, recrossing, 1.0),
        residual=residual,
        converged=solved & centred & (~exists | (recrossing > 0)),
    )


@eqx.filter_jit
def held_at(layer: HiddenLayer, lam: Array) -> HeldNetwork:
    """The network before specialisation, compiled."""
    return held_network(layer, lam)


def _risen_again(
    rho: Float[Array, "node"], log_density: Float[Array, "node"], after: Array, depth: Array
) -> Float[Array, ""]:
    """Position beyond a minimum at which a density has risen by its depth; infinite where there is
    none."""
    level = log_density[after] + depth
    high = (log_density >= level) & (jnp.arange(rho.shape[0]) > after)
    first = jnp.argmax(high)
    low = log_density[first - 1]
    share = (level - low) / (log_density[first] - low)
    found = rho[first - 1] + share * (rho[first] - rho[first - 1])
    return jnp.where(jnp.any(high), found, jnp.inf)


def _cumulative(values: Float[Array, "node"], step: float) -> Float[Array, "node"]:
    """The integral of a function on equidistant nodes from the first one to each of them; error of
    fourth order in the step."""
    trapezoids = jnp.cumsum((values[1:] + values[:-1]) / 2) * step
    slopes = jnp.asarray(jnp.gradient(values))
    corrected = trapezoids - step / 12 * (slopes[1:] - slopes[0])
    return jnp.concatenate([jnp.zeros(1), corrected])


def _bend(
    log_density: Float[Array, "node"], at: Array, step: float, slope: Array, rho: Array
) -> Float[Array, ""]:
    """Second derivative of -log p with respect to rho at a node."""
    before = log_density[jnp.abs(at - 1)]  # the density is even
    after, here = log_density[at + 1], log_density[at]
    first, second = (after - before) / (2 * step), (after + before - 2 * here) / step**2
    # with rho' = 4 sqrt(rho^2 + c^2), rho'' = 16 rho
    return -(second - first * 16 * rho[at] / slope[at]) / slope[at] ** 2


def _recrossing(
    held: HeldNetwork, layer: HiddenLayer, border: Array, rate: Array | float
) -> Float[Array, ""]:
    """The factor of Langer at the top of the barrier."""
    tau, degrees = held.tau, layer.degrees
    overlaps = held.free.plane.overlaps(degrees)

    def pull(u: Array, x: Array) -> Array:
        rho, q_perp = layer.scale * u, layer.scale**2 * x**2
        return layer.amplitude * (tau @ jnp.stack(overlaps(rho, rho**2 + q_perp)))

    def energy(at: Float[Array, "3"]) -> Array:
        u, x, a = at
        return (u**2 + x**2 + a**2) / 2 - (layer.dim - 2) * jnp.log(x) - a * pull(u, x)

    u = border / layer.scale
    along = jax.grad(lambda x: energy(jnp.stack([u, x, pull(u, x)])))

    def closer(_: int, x: Array) -> Array:
        return x - along(x) / jax.grad(along)(x)

    x = jax.lax.fori_loop(0, _NEWTON, closer, jnp.sqrt(layer.dim - 2))
    hessian = jax.hessian(energy)(jnp.stack([u, x, pull(u, x)]))
    mobility = jnp.sqrt(jnp.stack([rate * 1.0, rate * 1.0, jnp.ones(())]))
    growth = -jnp.linalg.eigvalsh(mobility[:, None] * hessian * mobility)[0]
    others = jnp.linalg.solve(hessian[1:, 1:], hessian[1:, 0])
    return growth / (rate * (hessian[0, 1:] @ others - hessian[0, 0]))
