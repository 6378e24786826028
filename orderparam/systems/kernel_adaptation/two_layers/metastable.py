"""One neuron in the field of a network that has not specialised: whether it stays, and behind which
barrier."""

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.kernel_adaptation.network import over
from orderparam.systems.kernel_adaptation.ridge import effective
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import ACCURACY
from orderparam.systems.kernel_adaptation.two_layers.model import (
    ScaledNetwork,
    TwoLayerNetwork,
)
from orderparam.systems.kernel_adaptation.two_layers.theory import minimal_tau
from orderparam.systems.kernel_adaptation.weights import Plane, Tau

# All neurons are held at |rho| < b. The residual tau that they leave is the field in which one
# neuron, if it were free, would have the density p(rho); b is the first minimum of this density
# from the centre. The free energy in the share of specialised neurons is convex
# (`share_free_energy`): a network that has not specialised is metastable only because each of its
# neurons has to cross log p(0) - log p(b), a barrier that does not grow with the number of neurons.
# Derived here.

STABLE, METASTABLE, UNSTABLE = 0, 1, 2
_ROUNDS = 10  # of border and field in turn
_SETTLED = 0.03  # relative change of the border in the last round; one node is 0.01 to 0.02


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


def _first_minimum(
    rho: Float[Array, "node"], log_density: Float[Array, "node"]
) -> tuple[Array, Array, Array]:
    """Position of the first minimum of a density from the centre, its depth below the centre, and
    whether the centre is a maximum; infinite where there is none."""
    centred = log_density[0] >= log_density[1]
    here, after = log_density[1:-1], log_density[2:]
    dips = (here <= log_density[:-2]) & (here < after)
    first = 1 + jnp.argmax(dips)
    found = jnp.any(dips)
    border = jnp.where(found, rho[first], jnp.inf)
    depth = jnp.where(found, log_density[0] - log_density[first], jnp.inf)
    return jnp.where(centred, border, 0.0), jnp.where(centred, depth, 0.0), centred


@theory(differentiable=False)
def unspecialised_network(system: TwoLayerNetwork | ScaledNetwork) -> UnspecialisedNetwork:
    r"""The barrier that one neuron crosses to specialise in a network that has not specialised.

    $$ p(\rho) \propto E_{\mathrm{prior}} \big[ e^{\frac{s}{2N} (\tau \cdot m)^2} \,\big|\, \rho
       \big] p_{\mathrm{prior}}(\rho), \qquad (M_b + \lambda) \tau = y, \qquad
       M_b = s \langle m m^T \rangle_{|\rho| < b} $$

    with b the first minimum of p, the averages over weights that are held at $|\rho| < b$, and the
    effective ridge $\lambda$. The waiting time of a neuron grows as $p(0)/p(b)$.

    The border is sought from the centre outwards, so that of several solutions the one nearest the
    centre is found.

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
    lam, free = effective(layer), Plane.of(layer)

    def held(border: Array, near: Tau) -> tuple[Plane, Tau]:
        rule = Plane.of(layer, "exact", border)
        return rule, minimal_tau(rule, lam, None, near)

    def again(reached: tuple[Array, Array, Tau], _: None) -> tuple[tuple[Array, Array, Tau], None]:
        border, _before, near = reached
        tau = held(border, near)[1]
        found = _first_minimum(*free.density(tau).along[:2])[0]
        return (jnp.where(found > 0, found, border), border, tau), None

    # from a border near the centre: a wider one lets neurons specialise, whose field hides the
    # well of those that have not
    start = 0.02 * layer.scale, layer.scale, jnp.zeros(len(layer.degrees))
    (border, before, near), _ = jax.lax.scan(again, start, None, length=_ROUNDS)
    rule, tau = held(border, near)
    rho, log_density, _ = free.density(tau).along
    position, escape, centred = _first_minimum(rho, log_density)
    log_mass = log_density + jnp.log(jnp.asarray(jnp.gradient(rho)))
    beyond, inside = (
        logsumexp(jnp.where(there, log_mass, -jnp.inf))
        for there in (rho > position, rho <= position)
    )
    log_odds = inside - beyond
    several = log_odds < jnp.log(layer.width)
    density = rule.density(tau)
    missed = jnp.max(jnp.abs(density.derivatives[1] + lam * tau - layer.y)) / layer.size
    settled = (border == before) | (jnp.abs(border - before) < _SETTLED * border)
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
