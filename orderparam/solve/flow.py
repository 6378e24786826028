"""The flow of a few order parameters in time: adaptive steps with a controlled error, and the times
at which a condition is met."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import lineax
import optimistix
from jaxtyping import Array, Bool, Float, Int, PyTree

VectorField = Callable[[PyTree, PyTree], PyTree]
_SHARE = 0.1  # fraction of the tolerance to which the stages of an implicit step are solved


class Flow(eqx.Module):
    """The state at the requested times (leading axis `time`), `converged` if the solver reached the
    last one, and the number of steps. Errors are controlled step by step, so that there is no
    residual."""

    value: PyTree[Float[Array, "time ..."]]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


class Crossing(eqx.Module):
    """The time at which a condition was met, the state and |condition| there, `converged` if it was
    met (otherwise the time is `until`), and the number of steps."""

    time: Float[Array, ""]
    value: PyTree[Float[Array, "..."]]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


class _Steps(diffrax.PIDController):
    """A step-size controller that gives up where the next step is below the resolution of the time:
    at a singularity, and where the field is not a number."""

    def adapt_step_size(self, *arguments: Any) -> Any:
        kept, begin, end, jumped, state, result = super().adapt_step_size(*arguments)
        stuck = end - begin <= 4 * jnp.finfo(jnp.float64).eps * jnp.abs(end)
        return (
            kept,
            begin,
            end,
            jumped,
            state,
            diffrax.RESULTS.where(stuck, diffrax.RESULTS.dt_min_reached, result),
        )


def _solve(
    field: VectorField,
    start: PyTree,
    begin: Any,
    end: Any,
    args: PyTree,
    rtol: float,
    **options: Any,
) -> Any:
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda _, y, args: field(y, args)),
        options.pop("solver"),
        begin,
        end,
        None,
        start,
        args,
        stepsize_controller=diffrax.ClipStepSizeController(
            _Steps(rtol=rtol, atol=options.pop("atol")), step_ts=options.pop("step_ts", None)
        ),
        throw=False,
        **options,
    )


def _implicit(start: PyTree, rtol: float, atol: float) -> diffrax.AbstractSolver:
    """Kvaerno's method of order 5, whose stages are solved to the tolerance of the state.

    Diffrax by itself holds a stage's increment to `rtol` of the increment. Near a rest point this
    is below the rounding of the field times the step, Newton's method finds no improvement, and
    every long step is refused. Here the scale is the size of the start, and changes below the
    tolerance count as zero, so that an increment dominated by rounding has converged. LU is used
    because for one unknown lineax's default treats a slope that is NaN as zero, and would accept
    the stage.
    """

    def size(change: PyTree) -> Float[Array, ""]:
        found = optimistix.rms_norm(change)
        return jnp.where(found < _SHARE, 0.0, found)

    scale = jax.lax.stop_gradient(optimistix.max_norm(start))
    stages = diffrax.VeryChord(
        rtol=rtol, atol=atol + rtol * scale, norm=size, kappa=_SHARE, linear_solver=lineax.LU()
    )
    return diffrax.Kvaerno5(root_finder=stages)


def flow(
    field: VectorField,
    start: PyTree[Float[Array, "..."]],
    times: Float[Array, "time"],
    args: PyTree[Any] = None,
    *,
    stiff: bool = False,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    max_steps: int = 1_000_000,
) -> Flow:
    """The solution of dy/dt = field(y, args) from `start` at t = 0, at increasing `times`.

    Explicit 5th-order steps (Tsitouras 2011); `stiff=True` takes implicit ones (Kvaerno 2004),
    which are faster where stability limits the steps, as in the long tails of relaxation. Works
    under `vmap` (the batch takes as long as its slowest member) and reverse-mode `grad`. Never
    raises: look at `converged`.
    """
    solution = _solve(
        field,
        start,
        0.0,
        times[-1],
        args,
        rtol,
        atol=atol,
        solver=_implicit(start, rtol, atol) if stiff else diffrax.Tsit5(),
        saveat=diffrax.SaveAt(ts=times),
        # where only stability limits the steps, the interpolation between them is far less accurate
        # than the steps
        step_ts=times,
        max_steps=max_steps,
    )
    return Flow(
        solution.ys, solution.result == diffrax.RESULTS.successful, solution.stats["num_steps"]
    )


def crossing(
    field: VectorField,
    start: PyTree[Float[Array, "..."]],
    condition: Callable[[Float[Array, ""], PyTree, PyTree], Float[Array, ""]],
    begin: Float[Array, ""],
    until: Float[Array, ""],
    args: PyTree[Any] = None,
    *,
    direction: Float[Array, ""] | float = 1.0,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    max_steps: int = 1_000_000,
) -> Crossing:
    """The first time after `begin` at which condition(t, y, args) crosses zero: upwards for
    direction 1, downwards for -1.

    `direction` may be traced, so that successive events can be found in one `lax.scan`. Works
    under `vmap`.
    """
    solution = _solve(
        field,
        start,
        begin,
        until,
        args,
        rtol,
        atol=atol,
        solver=diffrax.Tsit5(),
        max_steps=max_steps,
        event=diffrax.Event(
            lambda t, y, args, **_: direction * condition(t, y, args),
            optimistix.Newton(1e-10, 1e-10, optimistix.rms_norm),
            direction=True,
        ),
    )
    time, value = solution.ts[-1], jax.tree.map(lambda leaf: leaf[-1], solution.ys)
    met = solution.result == diffrax.RESULTS.event_occurred
    return Crossing(
        time, value, jnp.abs(condition(time, value, args)), met, solution.stats["num_steps"]
    )
