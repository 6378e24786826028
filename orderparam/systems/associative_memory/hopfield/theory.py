"""Replica-symmetric theory of the Hopfield model with one condensed pattern: its states.

The field h of a spin along the condensed pattern has the law N(m, sigma^2). Its mean m is the
overlap with the condensed pattern, and its variance sigma^2 = alpha r is the crosstalk of all other
patterns. With averages E over h,

    m = E tanh(h/T),   q = E tanh(h/T)^2,   C = (1 - q)/T,   r = q/(1 - C)^2

(Amit, Gutfreund, Sompolinsky 1985, 1987). C is the susceptibility and is below 1. In the code C is
the mean response E d tanh(h/T)/dh, which equals (1 - q)/T and is finite at T = 0 too.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.newton import newton_fixed_point
from orderparam.solve.root import decreasing_root
from orderparam.solve.solved import Solved
from orderparam.systems.associative_memory.hopfield.averages import (
    FieldAverages,
    Number,
    field_averages,
)
from orderparam.systems.associative_memory.hopfield.model import Hopfield


class HopfieldState(Result):
    """One solution of the replica-symmetric equations, per spin.

    Every number is NaN where the state does not exist.

    Fields:
        overlap: m = (1/N) sum xi s with the condensed pattern.
        self_overlap: q = (1/N) sum <s>^2.
        crosstalk: r; alpha r is the variance of the field that the other patterns cause.
        susceptibility: C = (1 - q)/T.
        free_energy: f, of H without the diagonal.
        energy: <H>/N, without the diagonal.
        entropy: entropy per spin; it is negative where replica symmetry is wrong.
        replicon: alpha E (d tanh(h/T)/dh)^2/(1 - C)^2. Replica symmetry is stable below 1 (de
            Almeida, Thouless); at T = 0 the replicon is infinite.
        stable: whether the state is stable against small changes of m and q. It is true for every
            retrieval state and spin glass that is returned. The paramagnet is stable only above
            T_g. Below T_g it has a lower free energy than the spin glass, but the free energy of
            the replica method is a maximum in q, not a minimum.
        valid: whether the state exists.
        residual: residual of the equations.
        converged: whether the equations were solved.
    """

    overlap: Float[Array, ""]
    self_overlap: Float[Array, ""]
    crosstalk: Float[Array, ""]
    susceptibility: Float[Array, ""]
    free_energy: Float[Array, ""]
    energy: Float[Array, ""]
    entropy: Float[Array, ""]
    replicon: Float[Array, ""]
    stable: Bool[Array, ""]
    valid: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class GroundStates(Result):
    """Retrieval and spin-glass states at T = 0.

    Fields:
        overlap: m of the retrieval state, NaN above the capacity.
        crosstalk: r of the retrieval state, NaN above the capacity.
        susceptibility: C of the retrieval state, NaN above the capacity.
        energy: energy per spin of the retrieval state, NaN above the capacity.
        spin_glass_energy: energy per spin of the spin glass.
        valid: whether the retrieval state exists.
        residual: residual of the equation for the retrieval state.
        converged: whether that equation was solved.
    """

    overlap: Float[Array, ""]
    crosstalk: Float[Array, ""]
    susceptibility: Float[Array, ""]
    energy: Float[Array, ""]
    spin_glass_energy: Float[Array, ""]
    valid: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def replica_symmetric(
    system: Hopfield, *, branch: Literal["retrieval", "spin glass", "paramagnet"] = "retrieval"
) -> HopfieldState:
    r"""One replica-symmetric state of the Hopfield model with one condensed pattern.

    With averages E over the field $h \sim N(m, \alpha r)$, $\alpha$ = `load` and T = `temperature`,

    $$ m = E \tanh \frac hT, \qquad q = E \tanh^2 \frac hT, \qquad C = \frac{1 - q}{T}, \qquad
       r = \frac{q}{(1 - C)^2} $$

    are the fields `overlap`, `self_overlap`, `susceptibility` and `crosstalk`. The `free_energy`
    per spin is

    $$ f = \frac\alpha2 + \frac{m^2}{2} + \frac{\alpha T}{2} \Big[ \ln(1 - C) - \frac{q}{T (1 -
          C)} \Big] + \frac{\alpha r C}{2} - T\, E \ln 2 \cosh \frac hT $$

    Args:
        branch: "retrieval" is the solution of largest m > 0, which exists below T_M; "spin glass"
            has m = 0 and q > 0 and exists below $T_g = 1 + \sqrt\alpha$; "paramagnet" has m = q =
            0, exists above T = 1 and is stable above T_g.

    Accuracy: 1e-8, also at T = 0. Replica symmetry is broken everywhere in the spin glass, and in
    the retrieval state at very low temperature. A `replicon` above 1 or a negative `entropy` shows
    that replica symmetry is broken.

    Source: Amit, Gutfreund, Sompolinsky (1985, 1987).

    >>> state = replica_symmetric(Hopfield(load=0.1, temperature=0.2))
    >>> round(float(state.overlap), 8), bool(state.valid)
    (0.98908516, True)
    """
    load, temperature = system.load, system.temperature
    if branch == "paramagnet":
        return _paramagnet(load, temperature)
    if branch == "spin glass":
        root = glass_state(load, temperature)
        valid = temperature < 1 + jnp.sqrt(load)
        return _state(
            load,
            temperature,
            jnp.zeros(()),
            jnp.exp(root.value),
            valid,
            root.residual,
            root.converged,
        )
    mean, deviation, residual, converged = retrieval_state(load, temperature)
    return _state(load, temperature, mean, deviation, converged, residual, jnp.asarray(True))


@theory
def zero_temperature(system: Hopfield) -> GroundStates:
    r"""Retrieval state and spin glass of the Hopfield model at T = 0.

    With $\alpha$ = `load` and $x = m/\sqrt{2 \alpha r}$, the retrieval state solves

    $$ \sqrt\alpha = \frac{1}{\sqrt 2} \Big( \frac{\mathrm{erf}(x)}{x} - \frac{2}{\sqrt\pi}
          e^{-x^2} \Big), \qquad
       m = \mathrm{erf}(x) $$

    at an x beyond the maximum of the right-hand side. At the maximum $\alpha$ is the capacity
    $\alpha_c \approx 0.138$. The system's temperature is not used.

    Accuracy: 1e-9; fewer digits of m just below the capacity.

    Source: Amit, Gutfreund, Sompolinsky (1987).

    >>> found = zero_temperature(Hopfield(0.1))
    >>> round(float(found.overlap), 8), round(float(found.energy), 8)
    (0.99799927, -0.50015421)
    """
    return ground_states(system.load)


def _state(
    load: Number | float,
    temperature: Number | float,
    mean: Number,
    deviation: Number,
    valid: Bool[Array, ""],
    residual: Number,
    converged: Bool[Array, ""],
) -> HopfieldState:
    """All observables of the state with field mean m and standard deviation sigma."""

    def kept(value: Number) -> Number:
        return jnp.where(valid, value, jnp.nan)

    # averages over the field h; `response` is C and `square` is q
    h = field_averages(mean, deviation, temperature)
    free_energy, entropy = free_energy_of(load, temperature, mean, h), entropy_of(load, h)
    return HopfieldState(
        overlap=kept(mean),
        self_overlap=kept(h.square),
        crosstalk=kept(h.square / (1 - h.response) ** 2),
        susceptibility=kept(h.response),
        free_energy=kept(free_energy),
        energy=kept(free_energy + temperature * entropy),
        entropy=kept(entropy),
        replicon=kept(jnp.exp(log_replicon(load, jnp.log(temperature), h))),
        stable=jnp.asarray(True),
        valid=valid,
        residual=jnp.where(valid, residual, 0.0),
        converged=converged,
    )


def free_energy_of(
    load: Number | float, temperature: Number | float, mean: Number, h: FieldAverages
) -> Number:
    """Free energy alpha/2 + m^2/2 + (alpha T/2) [ln(1-C) - q/(T (1-C))] + alpha r C/2 - T E ln
    2cosh(h/T).

    With r = q/(1-C)^2 the two terms in q add up to -alpha q (1 - 2C)/(2 (1-C)^2).
    """
    diagonal = (load + mean**2 + load * temperature * jnp.log1p(-h.response)) / 2
    return (
        diagonal - load * h.square * (1 - 2 * h.response) / (2 * (1 - h.response) ** 2) - h.log_cosh
    )


def entropy_of(load: Number | float, h: FieldAverages) -> Number:
    """Entropy -df/dT at fixed m, q and r, at which f is stationary."""
    return h.entropy - load * (jnp.log1p(-h.response) + h.response / (1 - h.response)) / 2


def _paramagnet(load: Number | float, temperature: Number | float) -> HopfieldState:
    """The state m = q = r = 0, whose C = 1/T must be below 1."""
    valid = jnp.greater(temperature, 1)

    def kept(value: Number) -> Number:
        return jnp.where(valid, value, jnp.nan)

    t = jnp.where(valid, temperature, 2.0)
    free_energy = load / 2 + load * t * jnp.log1p(-1 / t) / 2 - t * jnp.log(2.0)
    entropy = jnp.log(2.0) - load * (jnp.log1p(-1 / t) + 1 / (t - 1)) / 2
    zero = jnp.zeros(())
    return HopfieldState(
        overlap=kept(zero),
        self_overlap=kept(zero),
        crosstalk=kept(zero),
        susceptibility=kept(1 / t),
        free_energy=kept(free_energy),
        energy=kept(free_energy + t * entropy),
        entropy=kept(entropy),
        replicon=kept(load / (t - 1) ** 2),
        stable=jnp.asarray(temperature >= 1 + jnp.sqrt(load)),
        valid=valid,
        residual=zero,
        converged=jnp.asarray(True),
    )


@jax.jit
def glass_state(load: Number | float, temperature: Number | float) -> Solved:
    """Logarithm of the standard deviation sigma of the field in the spin glass, the root of
    sqrt(alpha q) = sigma (1 - C).

    C sigma is at most E|z| = sqrt(2/pi) for a standard normal z, so that sigma is at most
    sqrt(alpha) + sqrt(2/pi).
    """

    def equation(logarithm: Number, args: tuple[Number, Number]) -> Number:
        load, temperature = args
        deviation = jnp.exp(logarithm)
        h = field_averages(jnp.zeros(()), deviation, temperature)
        return jnp.sqrt(load * h.square) / deviation - 1 + h.response

    highest = jnp.log(jnp.sqrt(load) + np.sqrt(2 / np.pi) + 1e-9)
    return decreasing_root(equation, highest - 18.0, highest, (load, temperature))


@jax.jit
def retrieval_state(
    load: Number | float, temperature: Number | float
) -> tuple[Number, Number, Number, Bool[Array, ""]]:
    """Mean m and standard deviation sigma of the field in the retrieval state, the residual, and
    whether this state exists.

    The map (m, sigma) -> (E tanh, sqrt(alpha q)/(1 - C)) is monotone: a smaller m and a larger
    sigma give a smaller m and a larger sigma. Every solution has m below 1 and sigma above
    sqrt(alpha). Iterations and Newton steps from m = 1 and sigma = sqrt(alpha) therefore descend to
    the solution of largest m. The unknown is ln m, in which the solution m = 0 is at minus
    infinity.
    """

    def function(logarithms: Float[Array, "2"], args: tuple[Number, Number]) -> Float[Array, "2"]:
        load, temperature = args
        mean, deviation = jnp.exp(logarithms)
        h = field_averages(mean, deviation, temperature)
        return jnp.stack([jnp.log(h.tanh), jnp.log(load * h.square) / 2 - jnp.log(1 - h.response)])

    start = jnp.stack([jnp.zeros(()), jnp.log(load) / 2])
    found = newton_fixed_point(function, start, (load, temperature), damping=0.0, max_steps=100)
    mean, deviation = jnp.exp(found.value)
    return mean, deviation, found.residual, found.converged & (temperature < 1)


def log_replicon(load: Number | float, log_temperature: Number, h: FieldAverages) -> Number:
    """Logarithm of alpha E (d tanh(h/T)/dh)^2/(1 - C)^2; `fourth` is this average times T."""
    return jnp.log(load * h.fourth) - log_temperature - 2 * jnp.log1p(-h.response)


def ground_states(load: Number | float) -> GroundStates:
    """The retrieval state and the energy of the spin glass at temperature zero; NaN for retrieval
    above the largest load at which patterns are retrieved."""

    def reached(x: Number) -> Number:
        """Load at which x = m/sqrt(2 alpha r) solves the equations at T = 0."""
        return ((erf(x) / x - 2 * jnp.exp(-(x**2)) / np.sqrt(np.pi)) ** 2) / 2

    peak = decreasing_root(
        lambda x, _: jax.grad(reached)(x), jnp.asarray(0.5), jnp.asarray(4.0)
    ).value
    capacity = reached(peak)
    valid = load <= capacity
    stored = jnp.where(valid, load, capacity / 2)
    root = decreasing_root(
        lambda x, load: reached(x) - load, peak, 1 / jnp.sqrt(2 * stored), stored
    )
    # At T = 0, C is twice the density of the field at h = 0, sqrt(2/pi) exp(-x^2)/sigma with sigma
    # = sqrt(alpha)/(1 - C): `glance` is C/(1 - C). Because q = 1, r = 1/(1 - C)^2 = (1 + glance)^2.
    m, glance = erf(root.value), jnp.sqrt(2 / (np.pi * stored)) * jnp.exp(-(root.value**2))
    crosstalk = (1 + glance) ** 2
    energy = (-(m**2) + stored * (1 - crosstalk)) / 2
    return GroundStates(
        overlap=jnp.where(valid, m, jnp.nan),
        crosstalk=jnp.where(valid, crosstalk, jnp.nan),
        susceptibility=jnp.where(valid, glance / (1 + glance), jnp.nan),
        energy=jnp.where(valid, energy, jnp.nan),
        spin_glass_energy=-1 / np.pi - jnp.sqrt(2 * load / np.pi),
        valid=valid,
        residual=root.residual,
        converged=root.converged,
    )
