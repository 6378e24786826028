r"""Equilibrium of the Hopfield model whose spins are all updated at once (Little's dynamics).

The parallel heat bath has the stationary law P(s) ~ exp(sum_i ln 2cosh(h_i/T)) with the fields h_i
of the state s. This is the law of the layer s in a system of two layers of spins, s and s', with
the energy - sum_ij J_ij s_i s'_j: summing over s' gives one factor 2cosh(h_i/T) for each spin.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.needs import at_least
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian import standard_normal_rule
from orderparam.solve.newton import newton_fixed_point
from orderparam.systems.associative_memory.hopfield.model import Hopfield

Number = Float[Array, ""]


class SynchronousState(Result):
    """The retrieval state of parallel dynamics.

    Fields:
        overlap: m = (1/N) sum xi s, the overlap with the recalled pattern.
        self_overlap: overlap q of two replicas in the state.
        return_overlap: t_0 = (1/N) sum <s s'>, the overlap of a state with the state one step
            later.
        pressure: (1/N) ln Z of the two layers.
        valid: whether there is a retrieval state; the other numbers are NaN if there is none.
        residual: residual of the equations.
        converged: whether the equations were solved.
    """

    overlap: Number
    self_overlap: Number
    return_overlap: Number
    pressure: Number
    valid: Bool[Array, ""]
    residual: Number
    converged: Bool[Array, ""]


@theory(needs={"temperature": at_least(0.05, why="at 0 the state is that of `zero_temperature`")})
def synchronous_state(system: Hopfield, *, diagonal: bool = False) -> SynchronousState:
    r"""Retrieval state of the Hopfield model with parallel updates, replica symmetric.

    With $\beta = 1/T$ (`temperature`), $\alpha$ = `load`, the field $h = m + \sqrt{\alpha r}\, z$
    and $W = e^\omega \cosh 2\beta h + e^{-\omega}$, the fields `overlap` m, `self_overlap` q and
    `return_overlap` $t_0$ solve

    $$ m = \int Dz \frac{e^\omega \sinh 2\beta h}{W}, \quad q = \int Dz \Big( \frac{e^\omega \sinh
       2\beta h}{W} \Big)^2, \quad t_0 = \int Dz \frac{e^\omega \cosh 2\beta h - e^{-\omega}}{W} $$

    $$ c = \beta (1 + t_0 - 2q), \quad r = \frac{q}{(1 - c)^2}, \quad \omega = \alpha\beta \Big[
       \frac{1}{2 (1 + \beta (1 - t_0))} + \frac{1}{2 (1 - c)} - \delta \Big] $$

    where $\omega$ couples a spin to its own next state. $\delta$ is 1 if spins have no coupling to
    themselves, and 0 if they keep Hebb's $J_{ii} = \alpha$.

    Args:
        diagonal: whether spins keep the coupling to themselves that Hebb's rule gives.

    Raises:
        ValueError: for a temperature below 0.05.

    Accuracy: 1e-9.

    Source: Fontanari, Köberle (1988) for the model; the equations are derived here and were not
        compared with the tables of the paper.

    >>> found = synchronous_state(Hopfield(load=0.05, temperature=0.5))
    >>> round(float(found.overlap), 8), round(float(found.return_overlap), 8)
    (0.90798381, 0.83981849)
    """
    load, beta = jnp.asarray(system.load), 1 / jnp.asarray(system.temperature)
    without = 0.0 if diagonal else 1.0
    z, weight = standard_normal_rule((0.0,), refine=4)

    def crosstalk(q: Number, t0: Number) -> tuple[Number, Number, Number]:
        """The numbers c, r and omega; c is kept below 1 while the iteration has not converged."""
        c = jnp.minimum(beta * (1 + t0 - 2 * q), 0.98)
        omega = load * beta * (1 / (2 * (1 + beta * (1 - t0))) + 1 / (2 * (1 - c)) - without)
        return c, q / (1 - c) ** 2, omega

    def averages(state: tuple, _args: object) -> tuple:
        m, q, t0 = state
        _, r, omega = crosstalk(q, t0)
        h = 2 * beta * (m + jnp.sqrt(load * jnp.maximum(r, 0.0)) * z)
        size = jnp.abs(h)
        # Numerators and W are divided by e^(omega + |2 beta h|), so that nothing overflows.
        fade, other = jnp.exp(-2 * size), jnp.exp(-2 * omega - size)
        total = (1 + fade) / 2 + other
        sinh = jnp.sign(h) * (1 - fade) / 2 / total
        return (
            jnp.sum(weight * sinh),
            jnp.sum(weight * sinh**2),
            jnp.sum(weight * ((1 + fade) / 2 - other) / total),
        )

    one = jnp.ones(())
    solved = newton_fixed_point(averages, (one, one, one), (load, beta))
    m, q, t0 = solved.value
    c, r, omega = crosstalk(q, t0)
    h = 2 * beta * (m + jnp.sqrt(load * r) * z)
    log_w = jnp.logaddexp(omega + jnp.logaddexp(h, -h) - np.log(2), -omega)
    free = -(jnp.log1p(beta * (1 - t0)) + jnp.log1p(-c) - 2 * beta * q / (1 - c)) / 2
    pressure = (
        -beta * m**2
        + load * free
        + 2 * load * beta**2 * r * q
        - load * beta**2 * r
        - (omega + load * beta**2 * r + load * beta * without) * t0
        + jnp.sum(weight * log_w)
        + np.log(2)
    )
    valid = (m > 1e-3) & (c < 0.98)

    def shown(number: Number) -> Number:
        return jnp.where(valid, number, jnp.nan)

    return SynchronousState(
        overlap=shown(m),
        self_overlap=shown(q),
        return_overlap=shown(t0),
        pressure=shown(pressure),
        valid=valid,
        residual=jnp.where(valid, solved.residual, 0.0),
        converged=~valid | solved.converged,
    )
