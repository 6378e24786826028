"""The free energy of a network as a function of the share of its neurons that have specialised."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import entr, logsumexp
from jaxtyping import Array, Bool, Float, Int

from orderparam.core.fields import is_number
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.kernel_adaptation.network import HiddenLayer, over
from orderparam.systems.kernel_adaptation.ridge import effective
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import ACCURACY
from orderparam.systems.kernel_adaptation.two_layers.model import (
    ScaledNetwork,
    TwoLayerNetwork,
)
from orderparam.systems.kernel_adaptation.two_layers.theory import minimal_tau
from orderparam.systems.kernel_adaptation.weights import Plane, PlaneDensity, Tau

# A share c of the N neurons is held at |rho| > border and the others at |rho| < border. With Z_out
# and Z_in the averages over the prior on the two sides,
#
#     F(c) = max_tau { tau . y - (lambda/2) |tau|^2 - N [c log Z_out + (1 - c) log Z_in + H(c)] },
#     Z = E_prior [exp{ (s/2N) (tau . m)^2 }; side],      H(c) = -c log c - (1 - c) log(1 - c),
#
# is a maximum of functions that are convex in c, and therefore F is convex. It has one minimum, at
# the equilibrium of `adapted_weights`, also where the density of rho has several wells. Neurons in
# two wells then coexist in one network, but the network itself has one state. F(0) is the free
# energy of the network without a specialised neuron (the metastable state before specialisation),
# and F(1) that of a network in which all neurons have specialised. Derived here.

_SHARES = 21


class ShareFreeEnergy(Result):
    """Free energy of a network in which a given share of the neurons has specialised.

    Fields:
        share: the share c of neurons with |rho| > border, from 0 to 1.
        free_energy: F(c) minus the free energy of the equilibrium, in units of the temperature: the
            posterior probability of c is exp(-F) to leading order in the number of neurons.
        spread: d <rho^2> / weight_variance at each share.
        learnability: f_k / y_k at each share; NaN where the target has no such component.
        equilibrium_share: the share at equilibrium.
        residual: largest residual of the equations, divided by |y|.
        converged: whether all equations were solved and the integrals are resolved.
    """

    share: Float[Array, "share"]
    free_energy: Float[Array, "share"]
    spread: Float[Array, "share"]
    learnability: Float[Array, "share mode"]
    equilibrium_share: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class _Shared(eqx.Module):
    """Quadrature rule for the weights of neurons of which a share c is held outside the border and
    the share 1 - c inside."""

    sides: tuple[Plane, ...]
    shares: Float[Array, "side"]
    log_mass: Float[Array, "side"]

    @property
    def layer(self) -> HiddenLayer:
        return self.sides[0].layer

    def density(self, tau: Tau, loops: None = None) -> "_SharedDensity":
        return _SharedDensity(self, tau)


class _SharedDensity(eqx.Module):
    rule: _Shared
    tau: Tau

    @property
    def derivatives(self) -> tuple[Array, Array, Array]:
        """Function of tau that is maximised in F, with its gradient and its Hessian."""
        rule, shares = self.rule, self.rule.shares
        found = [side.density(self.tau).derivatives for side in rule.sides]
        value, output, curvature = (
            sum(share * part for share, part in zip(shares, parts)) for parts in zip(*found)
        )
        entropy = jnp.sum(shares * rule.log_mass + entr(shares))
        return value + rule.layer.width * entropy, output, curvature

    @property
    def spread(self) -> Array:
        layer = self.rule.layer
        squared = [side.density(self.tau).second_moments[0] for side in self.rule.sides]
        mean = sum(share * part for share, part in zip(self.rule.shares, squared))
        return layer.dim / layer.weight_variance * mean


def _check(system: TwoLayerNetwork | ScaledNetwork, border: float = 0.5, **_: object) -> None:
    if is_number(border) and not 0 < border < math.inf:
        raise ValueError(f"border = {border}: must be finite and > 0")


@theory(check=_check)
def share_free_energy(
    system: TwoLayerNetwork | ScaledNetwork, *, border: float = 0.5
) -> ShareFreeEnergy:
    r"""Free energy of a network as a function of the share of its neurons that have specialised.

    $$ F(c) = \max_\tau \Big\{ \tau \cdot y - \frac{\lambda}{2} |\tau|^2 - N \big[
       c \log Z_{\mathrm{out}} + (1 - c) \log Z_{\mathrm{in}}
       - c \log c - (1 - c) \log(1 - c) \big] \Big\} $$

    with $Z = E_{\mathrm{prior}} \exp\{\frac{s}{2N} (\tau \cdot m)^2\}$ over weights with |rho| >
    border or |rho| < border, and the effective ridge $\lambda$. F is convex: its one minimum is the
    equilibrium of `adapted_weights`, also where the density of rho has several wells.

    Args:
        border: the overlap |rho| > 0 beyond which a neuron counts as specialised. Default 1/2, as
            for `outside` of `sampled_network`.

    Raises:
        ValueError: for a border that is not finite and positive.

    Accuracy: 1e-8 in the equations, 1e-2 in the border, which lies between two nodes of the
    integrals.

    Source: derived here from the action of Rubin, Seroussi, Ringel (2024).

    >>> from orderparam.systems.kernel_adaptation import TwoLayerNetwork, hermite_target
    >>> network = TwoLayerNetwork(
    ...     10, 50, 700, 0.5, hermite_target({1: 1, 3: -0.4}), readout_variance=0.0075,
    ...     weight_variance=0.5,
    ... )
    >>> found = share_free_energy(network)
    >>> bool(np.all(np.diff(found.free_energy, 2) > 0)), round(float(found.equilibrium_share), 2)
    (True, 0.55)
    """
    layer = system.hidden
    lam, plane = effective(layer), Plane.of(layer)
    at_prior, one = jnp.zeros(len(layer.degrees)), jnp.ones(1)
    # `minimal_tau` needs only the layer and the derivatives of a density, as a `Plane` has them
    whole: Any = _Shared((plane,), one, jnp.zeros(1))
    balance = whole.density(minimal_tau(whole, lam, None, at_prior))
    far = jnp.abs(plane.rho) > border
    log_measures = [jnp.where(there, plane.log_measure, -jnp.inf) for there in (far, ~far)]
    sides = tuple(_with_measure(plane, one) for one in log_measures)
    log_mass = jnp.stack([logsumexp(one) for one in log_measures])
    log_mass -= logsumexp(log_mass)

    def missed(state: _SharedDensity) -> Array:
        return jnp.max(jnp.abs(state.derivatives[1] + lam * state.tau - layer.y)) / layer.size

    def free_energy(state: _SharedDensity) -> Array:
        tau = state.tau
        return tau @ layer.y - lam / 2 * (tau @ tau) - state.derivatives[0]

    def at(share: Array) -> tuple[Array, ...]:
        rule: Any = _Shared(sides, jnp.stack([share, 1 - share]), log_mass)
        state = rule.density(minimal_tau(rule, lam, None, balance.tau))
        output = layer.y - lam * state.tau
        return free_energy(state), state.spread, over(output, layer.y), missed(state)

    shares = jnp.linspace(0.0, 1.0, _SHARES)
    found, spread, learned, residuals = jax.lax.map(at, shares)
    density = plane.density(balance.tau)
    residual = jnp.maximum(jnp.max(residuals), missed(balance))
    residual = jnp.where(density.resolved, residual, jnp.inf)
    return ShareFreeEnergy(
        share=shares,
        free_energy=found - free_energy(balance),
        spread=spread,
        learnability=learned,
        equilibrium_share=jnp.sum(jnp.where(far[:, None], density.weight, 0.0)),
        residual=residual,
        converged=residual < ACCURACY,
    )


def _with_measure(plane: Plane, log_measure: Float[Array, "node"]) -> Plane:
    return eqx.tree_at(lambda rule: rule.log_measure, plane, log_measure)


# ------------------------------------------------------------------------------------------------
# One neuron in the field of a network that has not specialised: whether the neuron stays at the
# centre, and which barrier it has to cross to specialise.

# All neurons are held at |rho| < b. A free neuron in the field of the residual tau that these
# neurons leave would have the density p(rho), and b is the first minimum of this density from the
# centre. The free energy as a function of the share of specialised neurons is convex
# (`share_free_energy`). A network that has not specialised is therefore metastable only because
# each of its neurons has to cross the barrier log p(0) - log p(b), which does not grow with the
# number of neurons. Derived here.

STABLE, METASTABLE, UNSTABLE = 0, 1, 2
_ROUNDS = 10  # number of rounds in which border and field are updated in turn
SETTLED = 0.03  # relative change of the border in the last round; one node is 0.01 to 0.02


class UnspecialisedNetwork(Result):
    """One neuron in the field of a network none of whose neurons has specialised.

    Fields:
        state: 0 (stable), fewer than one of the N neurons would be beyond the border in this field;
            1 (metastable), at least one would, behind a barrier; 2 (unstable), the density has no
            maximum at the centre, so that neurons leave it without a barrier.
        border: b, the position of the first minimum of the density; infinite where the density
            falls everywhere, 0 in state 2.
        escape: log p(0) - log p(b), the barrier that a neuron has to cross to specialise, in units
            of the temperature; infinite where the density falls everywhere, 0 in state 2.
        log_odds: log of the probability of |rho| < b over that of |rho| > b; infinite where the
            density falls everywhere.
        spread: d <rho^2> / weight_variance of the network that is held at |rho| < b.
        learnability: f_k / y_k of this network; NaN where the target has no such component.
        residual: residual of the equations, divided by |y|.
        converged: whether they were solved and the border stayed in the last round.
    """

    state: Int[Array, ""]
    border: Float[Array, ""]
    escape: Float[Array, ""]
    log_odds: Float[Array, ""]
    spread: Float[Array, ""]
    learnability: Float[Array, "mode"]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def first_minimum(
    rho: Float[Array, "node"], log_density: Float[Array, "node"]
) -> tuple[Array, Array, Array]:
    """Position of the first minimum of a density beyond the centre, its depth below the maximum
    before it, and whether the centre is this maximum; infinite where there is none."""
    centred = log_density[0] >= log_density[1]
    here, after = log_density[1:-1], log_density[2:]
    dips = (here <= log_density[:-2]) & (here < after)
    first = 1 + jnp.argmax(dips)
    found = jnp.any(dips)
    border = jnp.where(found, rho[first], jnp.inf)
    before = jnp.arange(rho.shape[0]) < first
    highest = jnp.max(jnp.where(before, log_density, -jnp.inf))
    depth = jnp.where(found, highest - log_density[first], jnp.inf)
    return border, depth, centred


class HeldNetwork(NamedTuple):
    """A network all of whose neurons are held at |rho| < border.

    `rule` is the quadrature rule of these neurons, `tau` the residual that they leave, `free` the
    density of a free neuron in its field, and `before` the border of the round before.
    """

    rule: Plane
    tau: Tau
    free: PlaneDensity
    border: Float[Array, ""]
    before: Float[Array, ""]


def held_network(layer: HiddenLayer, lam: Array) -> HeldNetwork:
    """The network that is held at |rho| < b, with b the first minimum of the density of a free
    neuron in its field, found from the centre outwards."""
    free = Plane.of(layer)

    def held(border: Array, near: Tau) -> tuple[Plane, Tau]:
        rule = Plane.of(layer, "exact", border)
        return rule, minimal_tau(rule, lam, None, near)

    def again(reached: tuple[Array, Array, Tau], _: None) -> tuple[tuple[Array, Array, Tau], None]:
        border, _before, near = reached
        tau = held(border, near)[1]
        rho, log_density = free.density(tau).along[:2]
        found, _depth, centred = first_minimum(rho, log_density)
        return (jnp.where(centred, found, border), border, tau), None

    # The search begins with a border near the centre. With a wider border some neurons specialise,
    # and in their field the well at the centre disappears.
    start = 0.02 * layer.scale, layer.scale, jnp.zeros(len(layer.degrees))
    (border, before, near), _ = jax.lax.scan(again, start, None, length=_ROUNDS)
    rule, tau = held(border, near)
    return HeldNetwork(rule, tau, free.density(tau), border, before)


@theory(differentiable=False)
def unspecialised_network(system: TwoLayerNetwork | ScaledNetwork) -> UnspecialisedNetwork:
    r"""The barrier that one neuron crosses to specialise in a network that has not specialised.

    $$ p(\rho) \propto E_{\mathrm{prior}} \big[ e^{\frac{s}{2N} (\tau \cdot m)^2} \,\big|\, \rho
       \big] p_{\mathrm{prior}}(\rho), \qquad (M_b + \lambda) \tau = y, \qquad
       M_b = s \langle m m^T \rangle_{|\rho| < b} $$

    with b the first minimum of p, the averages over weights that are held at $|\rho| < b$, and the
    effective ridge $\lambda$. The waiting time of a neuron grows as $p(0)/p(b)$.

    The border is sought from the centre outwards. If there are several solutions, the one nearest
    to the centre is found.

    Accuracy: that of `adapted_weights`; the border to 3 %, which is one or two nodes of the
    integrals.

    Source: derived here from the action of Rubin, Seroussi, Ringel (2024).

    >>> from orderparam.systems.kernel_adaptation import TwoLayerNetwork, hermite_target
    >>> cubic = hermite_target({3: 1.0}, normalised=True)
    >>> network = TwoLayerNetwork(50, 80, 400, 0.055, cubic, readout_variance=0.04)
    >>> found = unspecialised_network(network)
    >>> int(found.state), round(float(found.escape), 1), round(float(found.border), 2)
    (1, 3.6, 0.45)
    """
    layer = system.hidden
    lam = effective(layer)
    held = held_network(layer, lam)
    rule, tau, border, before = held.rule, held.tau, held.border, held.before
    rho, log_density, _ = held.free.along
    position, escape, centred = first_minimum(rho, log_density)
    position, escape = (jnp.where(centred, one, 0.0) for one in (position, escape))
    log_mass = log_density + jnp.log(jnp.asarray(jnp.gradient(rho)))
    beyond, inside = (
        logsumexp(jnp.where(there, log_mass, -jnp.inf))
        for there in (rho > position, rho <= position)
    )
    log_odds = inside - beyond
    several = log_odds < jnp.log(layer.width)
    density = rule.density(tau)
    missed = jnp.max(jnp.abs(density.derivatives[1] + lam * tau - layer.y)) / layer.size
    settled = (border == before) | (jnp.abs(border - before) < SETTLED * border)
    residual = jnp.where(density.resolved, missed, jnp.inf)
    return UnspecialisedNetwork(
        state=jnp.where(centred, jnp.where(several, METASTABLE, STABLE), UNSTABLE),
        border=position,
        escape=escape,
        log_odds=log_odds,
        spread=layer.dim / layer.weight_variance * density.second_moments[0],
        learnability=over(layer.y - lam * tau, layer.y),
        residual=residual,
        converged=settled & (residual < ACCURACY),
    )
