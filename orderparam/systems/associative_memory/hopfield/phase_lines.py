"""The lines of the Hopfield model's phase diagram, and the loads at which its states are lost."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.minimum import differentiated, newton_minimum
from orderparam.solve.root import decreasing_root
from orderparam.systems.associative_memory.hopfield.averages import (
    Number,
    field_averages,
)
from orderparam.systems.associative_memory.hopfield.model import Hopfield
from orderparam.systems.associative_memory.hopfield.theory import (
    entropy_of,
    free_energy_of,
    glass_state,
    ground_states,
    log_replicon,
    retrieval_state,
)


class PhaseLines(Result):
    """Transition temperatures at one load; 0 means that the phase does not occur at this load.

    Fields:
        glass_temperature: T_g, below which there is a spin glass.
        retrieval_temperature: T_M, below which retrieval states exist.
        global_temperature: T_c, below which retrieval states have the lowest free energy.
        replicon_temperature: T_R, below which replica symmetry of retrieval states is broken.
        residual: largest residual of the equations for the lines.
        converged: whether all these equations were solved.
    """

    glass_temperature: Float[Array, ""]
    retrieval_temperature: Float[Array, ""]
    global_temperature: Float[Array, ""]
    replicon_temperature: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class CriticalLoads(Result):
    """Transition loads at one temperature; 0 means that the phase does not occur.

    Fields:
        retrieval_load: load up to which retrieval states exist.
        overlap: overlap of the retrieval state at that load.
        global_load: load up to which retrieval states have the lowest free energy.
        residual: largest residual of the equations for the loads.
        converged: whether both equations were solved.
    """

    retrieval_load: Float[Array, ""]
    overlap: Float[Array, ""]
    global_load: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def phase_lines(system: Hopfield) -> PhaseLines:
    r"""The four transition temperatures of the Hopfield model at the system's load.

    With $x = m/\sigma$, $y = T/\sigma$ and $\sigma^2 = \alpha r$ the equations of
    `replica_symmetric` are explicit: m, T and the load are functions of x and y,

    $$ m = E \tanh \frac{x + z}{y}, \qquad \sigma = \frac mx, \qquad T = y \sigma, \qquad
       \alpha = \frac{\sigma^2 (1 - C)^2}{q} $$

    with z standard normal. The line `glass_temperature` is $T_g = 1 + \sqrt\alpha$. On
    `retrieval_temperature`, $T_M$, the load is largest over x at given y. On `global_temperature`,
    $T_c$, the free energies of retrieval state and spin glass are equal. On
    `replicon_temperature`, $T_R$, the replicon of the retrieval state is 1. The system's
    temperature is not used.

    Accuracy: 1e-8. The line T_M bends back at low temperature, up to a load that is 0.2 % above the
    capacity; its upper branch is given.

    Source: Amit, Gutfreund, Sompolinsky (1987); the parametrisation by x and y is derived here.

    >>> round(float(phase_lines(Hopfield(0.05)).retrieval_temperature), 8)
    0.54225504
    """
    load = system.load
    bend = newton_minimum(
        differentiated(lambda place: -_shape(*place).log_load), jnp.asarray([2.13, 0.05])
    )
    stored = jnp.log(load) < _shape(*bend.value).log_load
    within = jnp.where(stored, load, 0.1)
    fold = decreasing_root(_reserve, bend.value[1], 2 + 2 * within**-0.25, within)
    highest = _fold(fold.value).temperature

    ground = ground_states(within)
    # T_c exists at loads at which the retrieval state has the lowest energy at T = 0. At larger
    # loads the spin glass has the lower energy.
    lowest = stored & ground.valid & (ground.spin_glass_energy > ground.energy)
    equal = decreasing_root(
        _free_energy_gap, jnp.zeros(()), (1 - 1e-6) * highest, jnp.where(lowest, within, 0.01)
    )

    # T_R = sqrt(8 alpha / 9 pi) exp(-1/2 alpha) at small loads (Amit, Gutfreund, Sompolinsky 1985);
    # below exp(-600) it is given as 0.
    guess = jnp.log(8 * within / (9 * np.pi)) / 2 - 1 / (2 * within)
    fragile = stored & (guess > -600)
    place = jnp.where(fragile, guess, -6.0)
    broken = decreasing_root(
        _instability,
        place - 1,
        jnp.minimum(place + 5, jnp.log(highest)),
        jnp.where(fragile, within, 0.1),
    )
    roots = [(stored, fold), (lowest, equal), (fragile, broken)]
    return PhaseLines(
        glass_temperature=1 + jnp.sqrt(load),
        retrieval_temperature=jnp.where(stored, highest, 0.0),
        global_temperature=jnp.where(lowest, equal.value, 0.0),
        replicon_temperature=jnp.where(fragile, jnp.exp(broken.value), 0.0),
        residual=jnp.max(
            jnp.stack([jnp.where(there, root.residual, 0.0) for there, root in roots])
        ),
        converged=bend.converged
        & jnp.all(jnp.stack([~there | root.converged for there, root in roots])),
    )


@theory
def critical_loads(system: Hopfield) -> CriticalLoads:
    r"""The loads at which the lines T_M and T_c of `phase_lines` cross the system's temperature.

    `retrieval_load` solves $T_M(\alpha) = T$ and `global_load` solves $T_c(\alpha) = T$ with T =
    `temperature`. At T = 0 the first is the capacity. The system's load is not used.

    Accuracy: 1e-8.

    Source: Amit, Gutfreund, Sompolinsky (1987); the parametrisation is that of `phase_lines`.

    >>> round(float(critical_loads(Hopfield(0.1)).retrieval_load), 6)
    0.137906
    """
    ordered = system.temperature < 1
    temperature = jnp.where(ordered, system.temperature, 0.5)
    place = decreasing_root(
        lambda y, t: t - _fold(y).temperature,
        jnp.zeros(()),
        2 + 2 / jnp.sqrt(1 - temperature),
        temperature,
    )
    fold = _fold(place.value)
    equal = decreasing_root(
        lambda log_load, t: _free_energy_gap(t, jnp.exp(log_load)),
        fold.log_load - 8,
        fold.log_load - 1e-6,
        temperature,
    )
    return CriticalLoads(
        retrieval_load=jnp.where(ordered, jnp.exp(fold.log_load), 0.0),
        overlap=jnp.where(ordered, fold.overlap, 0.0),
        global_load=jnp.where(ordered, jnp.exp(equal.value), 0.0),
        residual=jnp.where(ordered, jnp.maximum(place.residual, equal.residual), 0.0),
        converged=~ordered | (place.converged & equal.converged),
    )


class _Shape(NamedTuple):
    """A retrieval state given by x = m/sigma and y = T/sigma, of which overlap, temperature and
    load are explicit functions.
    """

    overlap: Number
    temperature: Number
    log_load: Number


def _shape(x: Number, y: Number) -> _Shape:
    h = field_averages(x, jnp.ones(()), y)  # fields and temperatures in units of sigma
    # sigma = m/x; C is response/sigma, and alpha = sigma^2 (1 - C)^2/q
    deviation = h.tanh / x
    log_load = 2 * jnp.log(deviation - h.response) - jnp.log(h.square)
    return _Shape(h.tanh, y * deviation, log_load)


@jax.jit
def _fold(y: Number) -> _Shape:
    """The retrieval state of largest load at fixed y = T/sigma; its x is near 2.1 for every y."""

    def slope(x: Number, y: Number) -> Number:
        along, across = jax.jacfwd(lambda place: _shape(*place))(jnp.stack([x, y]))[1:]
        return across[0] - across[1] * along[0] / along[1]

    return _shape(decreasing_root(slope, jnp.asarray(1.0), jnp.asarray(4.0), y).value, y)


def _reserve(y: Number, load: Number) -> Number:
    """Logarithm of the factor by which the load may grow until retrieval ends."""
    return _fold(y).log_load - jnp.log(load)


@jax.custom_jvp
def _free_energy_gap(temperature: Number, load: Number) -> Number:
    """Free energy of the spin glass minus that of retrieval."""
    return _gap(temperature, load)[0]


@_free_energy_gap.defjvp
def _(primals: tuple[Number, Number], tangents: tuple[Number, Number]) -> tuple[Number, Number]:
    gap, by_temperature, by_load = _gap(*primals)
    return gap, by_temperature * tangents[0] + by_load * tangents[1]


@jax.jit
def _gap(temperature: Number, load: Number) -> Float[Array, "3"]:
    """Free energy of the spin glass minus that of retrieval, and the derivatives of this difference
    in temperature and load.

    The free energy is stationary in m, q and r, so that their derivatives do not enter.
    """

    def terms(mean: Number, deviation: Number) -> Float[Array, "3"]:
        h = field_averages(mean, deviation, temperature)
        # df/dalpha at fixed alpha r
        slope = (1 + temperature * jnp.log1p(-h.response) - h.square / (1 - h.response)) / 2
        return jnp.stack([free_energy_of(load, temperature, mean, h), -entropy_of(load, h), slope])

    mean, deviation, *_ = retrieval_state(load, temperature)
    glass = jnp.exp(glass_state(load, temperature).value)
    return terms(jnp.zeros(()), glass) - terms(mean, deviation)


def _instability(log_temperature: Number, load: Number) -> Number:
    """Logarithm of the replicon of the retrieval state; replica symmetry breaks where it is 0."""
    mean, deviation, *_ = retrieval_state(load, jnp.exp(log_temperature))
    return log_replicon(
        load, log_temperature, field_averages(mean, deviation, jnp.exp(log_temperature))
    )
