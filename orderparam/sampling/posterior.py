"""Equilibrium of noisy training: samples from any density over a pytree of parameters."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from orderparam.core.fields import check_integer
from orderparam.core.system import nearest
from orderparam.running.threads import batched
from orderparam.sampling.chains import adapt, begin_chains, burn_in, record
from orderparam.sampling.checks import (
    check_finite,
    check_functions,
    check_stability,
    checked_positions,
    checked_scale,
    checked_step_sizes,
)
from orderparam.sampling.curvature import largest_curvature, variance_inflation
from orderparam.sampling.estimate import estimate
from orderparam.sampling.samples import Samples
from orderparam.sampling.transitions import METHODS, Leapfrog, LogDensity

SHORTEST_ADAPTATION = 20


@batched
def sample(
    log_density: LogDensity,
    initial: PyTree | Callable[[PRNGKeyArray], PyTree],
    key: PRNGKeyArray,
    *,
    method: str = "hmc",
    warmup: int = 500,
    samples: int = 500,
    thin: int = 1,
    chains: int | None = None,
    observe: Callable[[PyTree], PyTree] | None = None,
    average: Callable[[PyTree], PyTree] | None = None,
    step_size: float | Float[Array, ""] | Float[Array, "chain"] | None = None,
    leapfrog_steps: int = 10,
    trajectory: float | None = None,
    scale: PyTree | None = None,
) -> Samples:
    """Draw from p(u) ∝ exp(log_density(u)) with independent Markov chains, and estimate the errors
    of the averages.

    log_density:    position -> scalar, -U(u). The equilibrium of noisy training with loss L at
                    temperature T and Gaussian prior: write each weight as theta = (prior standard
                    deviation) * u and give -|u|^2/2 - L/T. The flow du = -grad U dt + sqrt(2 dt) xi
                    is then d(theta) = -(gamma theta + grad L) ds + sqrt(2T ds) xi, with
                    gamma = T/(prior variance) and ds = dt (prior variance)/T.
    initial:        positions, each array with a leading chain axis; or, with `chains`, a function
                    key -> position. Chains may start from different states (prior draws, the
                    teacher): R-hat over all of them tells whether the start is forgotten,
                    `estimate(values[:4])` averages some of them.
    method:         "hmc", "mala", "nuts" (exact), or "langevin" (every step taken, the
                    discretisation error reported).
    warmup:         transitions before the first draw. In the exact methods each chain tunes its own
                    step size in them, to 80 % acceptance (MALA 57.4 %); it is then frozen.
    samples, thin:  draws recorded per chain, one after each `thin` transitions.
    observe:        position -> array or pytree of arrays (real, integer or boolean), recorded at
                    each draw. Weights are kept only when asked for, `observe=lambda u: u`. Left
                    out: log density and virial only.
    average:        position -> array or pytree of arrays, of which only the mean over the draws of
                    each chain is kept, without an error: for many numbers, such as predictions at
                    test points, whose diagnostics would take longer than the chains.
    step_size:      its meaning is told in `orderparam.sampling.transitions`. A number, or one per
                    chain: used as it is. Left out in Langevin: 0.1/max(1, largest curvature),
                    measured at the start and again after warm-up.
    leapfrog_steps: leapfrog steps of an HMC trajectory, whose step size is drawn anew within +-20 %
                    for each.
    trajectory:     length of an HMC trajectory instead, in units of the parameters (at most 100
                    steps): leapfrog_steps is then trajectory/(step size), rounded up. A direction
                    of width s is forgotten at once if it is about pi s/2.
    scale:          pytree of one position with positive numbers or arrays that broadcast against
                    it: the posterior widths of the parameters. The chains run in u/scale, which
                    amounts to the diagonal mass matrix 1/scale^2.

    Settings for posteriors of networks. In unit-prior coordinates the curvatures of U run from
    about 1 to 1 + (largest eigenvalue of the kernel on the training points)/T, which is the tangent
    kernel when all weights are sampled, the NNGP kernel when only readouts are. The tuned HMC step
    is of the order of the inverse square root of the largest; a direction held by the prior alone
    is forgotten in about 1/(step * leapfrog_steps)^2 draws. So: HMC with 10 to 15 leapfrog steps
    and a warm-up of 150 to 500; at low temperature, where the step comes out below 0.05, more
    leapfrog steps, or `scale` when the stiff parameters are known (hidden weights behind a large
    readout). Four chains or more from the prior, and as many from the teacher where phases may
    coexist; large steps tried in the warm-up can throw a chain out of a metastable phase: give
    `step_size` to rule that out. Langevin: a warm-up of more than 5 and a run of more than 100 in
    units of time (number of transitions times dt), `thin` of about 0.2/dt.

    To go on with a run: `sample(log_density, done.position, key, step_size=done.step_size,
    warmup=0, ...)`.

    Compiled once for given functions, shapes and lengths; arrays held by a function that is itself
    a pytree, such as `jax.tree_util.Partial(log_density, data)`, may change without another
    compilation. Pure: vmappable over `key` (seeds), positions, `step_size` and such data; under
    vmap the checks that need values are left out, and an unstable Langevin run shows in
    `variance_inflation` and `converged`.

    Raises `ValueError` for an unknown method; lengths that are not integers or too small (samples <
    4, thin < 1, warmup < 20 where the step size is tuned); a trajectory that is not positive; a
    step size or a scale that is not positive or does not fit; positions that are not real arrays or
    differ in their chain axis; a log density that is not a scalar, or not finite (it or its
    gradient) where a chain starts; observables that are not numbers; a Langevin step >= 2/(largest
    curvature where a chain starts).
    """
    if method not in METHODS:
        raise ValueError(f"method = {method!r} does not exist{nearest(str(method), list(METHODS))}")
    check_integer("samples", samples, 4)
    check_integer("thin", thin, 1)
    check_integer("leapfrog_steps", leapfrog_steps, 1)
    if trajectory is not None and not trajectory > 0:
        raise ValueError(f"trajectory = {trajectory}: must be > 0")
    leapfrog: Leapfrog = leapfrog_steps if trajectory is None else float(trajectory)
    if step_size is None and method != "langevin":
        check_integer(
            "warmup", warmup, SHORTEST_ADAPTATION, " to tune the step size (or give step_size)"
        )
    else:
        check_integer("warmup", warmup, 0)

    initial_key, curvature_key, warmup_key, draw_key = jax.random.split(key, 4)
    positions, count = checked_positions(initial, chains, initial_key)
    given = None if step_size is None else checked_step_sizes(step_size, count)
    observe = _nothing if observe is None else observe
    average = _nothing if average is None else average
    one_position = jax.eval_shape(
        lambda all_of_them: jax.tree.map(lambda x: x[0], all_of_them), positions
    )
    check_functions(log_density, {"observe": observe, "average": average}, one_position)
    if scale is not None:
        scale = checked_scale(scale, one_position)
        log_density, observe, average = (
            _Rescaled(function, scale) for function in (log_density, observe, average)
        )
        positions = jax.tree.map(jnp.divide, positions, scale)

    states = begin_chains(method, log_density, positions)
    check_finite(states.logdensity, states.logdensity_grad)
    warmup_keys, draw_keys = jax.random.split(warmup_key, count), jax.random.split(draw_key, count)

    def curvatures(states: Any) -> Float[Array, "chain"]:
        return _largest_curvatures(
            log_density, states.position, jax.random.split(curvature_key, count)
        )

    def burned_in(states: Any, step_sizes: Float[Array, "chain"]) -> Any:
        if warmup == 0:
            return states
        return burn_in(method, leapfrog, log_density, warmup_keys, states, step_sizes, warmup)

    if method == "langevin":
        at_start = curvatures(states)
        step_sizes = _langevin_step(at_start) if given is None else given
        check_stability(step_sizes, at_start)
        states = burned_in(states, step_sizes)
        if given is None:
            step_sizes = _langevin_step(curvatures(states))
    elif given is None:
        states, step_sizes = adapt(method, leapfrog, log_density, warmup_keys, states, warmup)
    else:
        step_sizes = given
        states = burned_in(states, step_sizes)

    states, kept = record(
        method,
        leapfrog,
        log_density,
        (observe, average),
        draw_keys,
        states,
        step_sizes,
        samples,
        thin,
    )

    biased = method == "langevin"
    inflation = variance_inflation(step_sizes, curvatures(states)) if biased else jnp.ones(count)
    estimates, healthy = _estimates(kept.observables, kept.log_density)
    return Samples(
        observables=kept.observables,
        estimates=estimates,
        averages=kept.averages,
        log_density=kept.log_density,
        virial=kept.virial,
        acceptance_rate=kept.acceptance_rate,
        step_size=step_sizes,
        variance_inflation=inflation,
        position=states.position
        if scale is None
        else jax.tree.map(jnp.multiply, states.position, scale),
        converged=healthy & jnp.all(jnp.isfinite(inflation)),
        method=method,
    )


def doubled(
    done: Samples,
    go_on: Callable[[Samples, PRNGKeyArray, int], Samples],
    key: PRNGKeyArray,
    *,
    doublings: int,
    converged: Callable[[Samples], Bool[Array, ""]],
) -> Samples:
    """A run that goes on until it has converged, each time until it is twice as long.

    The rule looks at the diagnostics of the chains alone, so that a run that has converged at once
    is returned as it is.

    go_on:     the run, a key and a number of draws -> that many further draws of every chain, from
               `done.position` at `done.step_size` and without warm-up.
    key:       every continuation has a key of its own, folded in from this one.
    doublings: how many times at most; 0 leaves every run as it is.
    converged: whether a run is long enough.

    Raises `ValueError` where `doublings` is not an integer or is negative.
    """
    check_integer("doublings", doublings, 0)
    for number in range(doublings):
        if converged(done):
            break
        draws = done.log_density.shape[1]
        done = _joined(done, go_on(done, jax.random.fold_in(key, number), draws))
    return done


def _joined(first: Samples, then: Samples) -> Samples:
    """Two runs of the same chains, one after the other."""

    def traces(run: Samples) -> tuple[PyTree, Array, Array]:
        return run.observables, run.log_density, run.virial

    observables, log_density, virial = jax.tree.map(
        lambda *parts: jnp.concatenate(parts, axis=1), traces(first), traces(then)
    )
    share = first.log_density.shape[1] / log_density.shape[1]

    def mean(early: Array, late: Array) -> Array:
        return share * early + (1 - share) * late

    estimates, healthy = _estimates(observables, log_density)
    return Samples(
        observables=observables,
        estimates=estimates,
        averages=jax.tree.map(mean, first.averages, then.averages),
        log_density=log_density,
        virial=virial,
        acceptance_rate=mean(first.acceptance_rate, then.acceptance_rate),
        step_size=then.step_size,
        variance_inflation=then.variance_inflation,
        position=then.position,
        converged=healthy & jnp.all(jnp.isfinite(then.variance_inflation)),
        method=then.method,
    )


class _Rescaled(eqx.Module):
    """A function of the parameters u, evaluated at u/scale. It is a pytree, so that another scale
    compiles nothing."""

    function: Callable[[PyTree], PyTree]
    scale: PyTree

    def __call__(self, position: PyTree) -> PyTree:
        return self.function(jax.tree.map(jnp.multiply, position, self.scale))


def _nothing(position: PyTree) -> dict[str, Array]:
    return {}


@eqx.filter_jit
def _largest_curvatures(
    log_density: LogDensity, positions: PyTree, keys: Array
) -> Float[Array, "chain"]:
    return jax.vmap(lambda position, key: largest_curvature(log_density, position, key))(
        positions, keys
    )


def _langevin_step(curvatures: Float[Array, "chain"]) -> Float[Array, "chain"]:
    """dt = 0.1/A: 1/(1 - dt A/2) is 1.05. A is at least 1, the curvature of the prior, where U is
    concave (a barrier)."""
    return 0.1 / jnp.maximum(curvatures, 1.0)


def _estimates(
    observables: PyTree, log_density: Float[Array, "chain draw"]
) -> tuple[PyTree, Bool[Array, ""]]:
    """An `Estimate` for each observable, and True if all of them and the log density are
    reliable."""
    leaves, structure = jax.tree_util.tree_flatten(observables)
    columns = [leaf.reshape(*log_density.shape, -1) for leaf in (log_density, *leaves)]
    joint = estimate(jnp.concatenate(columns, axis=-1))  # one compiled program for any pytree
    edges = np.cumsum([column.shape[-1] for column in columns])
    found = [
        jax.tree.map(
            lambda part, a=start, b=stop, shape=leaf.shape[2:]: part[a:b].reshape(shape), joint
        )
        for leaf, start, stop in zip(leaves, edges[:-1], edges[1:])
    ]
    # A constant observable cannot be judged; a constant log density belongs to a chain that never
    # moved.
    ignored = joint.constant.at[0].set(False)
    return jax.tree_util.tree_unflatten(structure, found), jnp.all(joint.reliable | ignored)
