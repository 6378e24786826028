"""Langevin dynamics of neurons that cross their barrier: independent neurons in the field of a
network that has not specialised, and whole networks that are trained on the population loss.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from orderparam.core.fields import check_integer
from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.gaussian.arcsine import Erf
from orderparam.systems.kernel_adaptation.hermite_overlaps import overlaps
from orderparam.systems.kernel_adaptation.network import HiddenLayer
from orderparam.systems.kernel_adaptation.two_layers.escape import escape_time, held_at
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

# In units of the prior, with one unit of time the relaxation time of the read-out under its weight
# decay alone and r the rate of the hidden weights,
#
#     du = r (-u + F_u) dt + sqrt(2r) dB,    da = (-a + F_a) dt + sqrt(2) dB',   F = -grad L / T.
#
# A step takes weight decay and noise exactly and F as constant: x -> e^-h x + (1 - e^-h) F +
# sqrt(1 - e^-2h) xi with h = step for read-outs and h = r step for hidden weights. On the
# population loss L = (n/2) E (f - y)^2 of erf units
#
#     -L/T = (1/lambda) [ A . E phi y - A^T G A / 2 ] + const,   lambda = T/n,   A = sqrt(s/N) a,
#     G_cc' = (2/pi) asin{ 2 w_c . w_c' / sqrt[(1 + 2|w_c|^2)(1 + 2|w_c'|^2)] },
#
# and one neuron in the field tau has -L/T = A tau . m(w).

_SETTLING = 3.0  # time before neurons are counted, in relaxation times of the hidden weights


class Escapes(Result):
    """First crossings of the barrier by neurons that are trained by Langevin dynamics.

    Fields:
        time: sum over neurons of the time that they spent before they crossed, divided by the
            number of crossings: an estimate of the mean time of one neuron, unbiased where neurons
            cross at a constant rate.
        share: crossings over neurons.
        barrier: barrier of one neuron in theory, log p(0) - log p(b).
        duration: the time that was simulated after settling.
        converged: whether as many neurons crossed as were asked for.
    """

    time: Float[Array, ""]
    share: Float[Array, ""]
    barrier: Float[Array, ""]
    duration: Float[Array, ""]
    converged: Bool[Array, ""]


class _Weights(NamedTuple):
    """Weights in units of their prior."""

    hidden: Float[Array, "unit input"]
    readout: Float[Array, "unit"]


LogLikelihood = Callable[[_Weights], Float[Array, ""]]  # -L/T


class _State(NamedTuple):
    weights: _Weights
    crossed: Bool[Array, "unit"]
    crossings: Int[Array, ""]
    exposure: Float[Array, ""]
    steps: Int[Array, ""]
    key: PRNGKeyArray


class IndependentNeurons(eqx.Module):
    """-L/T of neurons in a given field."""

    layer: HiddenLayer
    tau: Float[Array, "mode"]

    def __call__(self, weights: _Weights) -> Float[Array, ""]:
        w = self.layer.scale * weights.hidden
        q = jnp.sum(w**2, axis=1)
        m = jnp.stack(overlaps(self.layer.phi, self.layer.degrees, q[0], q[0])(w[:, 0], q))
        return self.layer.amplitude * jnp.sum(weights.readout * (self.tau @ m))


class PopulationLoss(eqx.Module):
    """-L/T of a network of erf units on the population loss, up to a constant, in single
    precision."""

    layer: HiddenLayer

    def __call__(self, weights: _Weights) -> Float[Array, ""]:
        layer = self.layer
        assert isinstance(layer.phi, Erf)  # as the experiment has checked
        hidden, readout = (part.astype(jnp.float32) for part in weights)
        w = layer.scale.astype(jnp.float32) * hidden
        a = layer.amplitude.astype(jnp.float32) * readout
        q = jnp.sum(w**2, axis=1)
        # the target has Hermite components of few degrees, each with a closed form
        degrees = tuple(range(layer.target.polynomial.shape[0]))
        m = jnp.stack(overlaps(layer.phi, degrees, q[0], q[0])(w[:, 0], q))
        along = layer.target.polynomial.astype(jnp.float32) @ m
        twice = 2 * layer.phi.gain**2
        root = jnp.sqrt(1 + twice * q)
        kernel = 2 / jnp.pi * jnp.arcsin(twice * (w @ w.T) / (root[:, None] * root))
        found = a @ along - a @ (kernel @ a) / 2
        return found / layer.ridge.astype(jnp.float32)


@eqx.filter_jit
def _until_crossed(
    likelihood: LogLikelihood,
    start: _Weights,
    key: PRNGKeyArray,
    numbers: dict[str, Array],
    wanted: int,
    returned: bool,
) -> _State:
    """Training until `wanted` neurons have crossed. While the neurons settle, and afterwards if
    they are `returned`, a neuron that has crossed goes back to the centre.

    numbers: `step`, `rate`, `crossed` (in units of the prior), `settling` and `longest` (numbers
    of steps).
    """
    step, rate = numbers["step"], numbers["rate"]
    force = jax.grad(likelihood)

    def moved(x: Array, pull: Array, h: Array, key: PRNGKeyArray) -> Array:
        keep = jnp.exp(-h)
        noise = jax.random.normal(key, x.shape, jnp.float32)
        return (keep * x + (1 - keep) * pull + jnp.sqrt(1 - keep**2) * noise).astype(x.dtype)

    def advance(state: _State) -> _State:
        key, hidden_key, readout_key, again_key = jax.random.split(state.key, 4)
        pull = force(state.weights)
        hidden = moved(state.weights.hidden, pull.hidden, rate * step, hidden_key)
        readout = moved(state.weights.readout, pull.readout, step, readout_key)
        settled = state.steps >= numbers["settling"]
        new = (jnp.abs(hidden[:, 0]) > numbers["crossed"]) & ~state.crossed
        back = new & (returned | ~settled)

        def fresh(x: Array) -> Array:
            draws = jax.random.normal(again_key, x.shape, x.dtype)
            return draws.at[:, 0].set(0) if x.ndim == 2 else draws

        # few steps return a neuron, and only these draw new weights
        weights = jax.lax.cond(
            jnp.any(back),
            lambda all_of_them: jax.tree.map(
                lambda x: jnp.where(back.reshape(-1, *[1] * (x.ndim - 1)), fresh(x), x), all_of_them
            ),
            lambda all_of_them: all_of_them,
            _Weights(hidden, readout),
        )
        waiting = jnp.where(settled, jnp.sum(~state.crossed), 0)
        return _State(
            weights,
            state.crossed | (new & settled & (not returned)),
            state.crossings + jnp.where(settled, jnp.sum(new), 0),
            state.exposure + step * waiting,
            state.steps + 1,
            key,
        )

    def going(state: _State) -> Array:
        return (state.crossings < wanted) & (state.steps < numbers["longest"])

    none, zero = jnp.zeros(start.readout.shape, bool), jnp.zeros((), int)
    first = _State(start, none, zero, jnp.zeros(()), zero, key)
    return jax.lax.while_loop(going, advance, first)


def _escapes(
    system: TwoLayerNetwork,
    likelihood: LogLikelihood,
    units: int,
    key: PRNGKeyArray,
    settings: dict[str, float],
    wanted: int,
    returned: bool,
) -> Escapes:
    layer = system.hidden
    found = escape_time(system, ridge_kind="bare")
    hidden_key, readout_key, run_key = jax.random.split(key, 3)
    hidden = jax.random.normal(hidden_key, (units, system.size("input_dim")), jnp.float32)
    inside = jnp.minimum(1.0, found.border / (3 * layer.scale))
    start = _Weights(
        hidden.at[:, 0].multiply(inside.astype(hidden.dtype)),
        jax.random.normal(readout_key, (units,), jnp.float32),
    )
    step, rate = settings["step"], settings["hidden_rate"]
    settling = round(_SETTLING / (rate * step))
    numbers = {
        "step": jnp.asarray(step),
        "rate": jnp.asarray(rate),
        "crossed": found.crossed / layer.scale,
        "settling": jnp.asarray(settling),
        "longest": jnp.asarray(settling + round(settings["longest"] / (rate * step))),
    }
    run = _until_crossed(likelihood, start, run_key, numbers, wanted, returned)
    return Escapes(
        time=run.exposure / run.crossings,
        share=run.crossings / units,
        barrier=found.barrier,
        duration=step * (run.steps - settling),
        converged=run.crossings >= wanted,
    )


def _check(system: TwoLayerNetwork, crossings: int = 8, neurons: int = 1, **options: float) -> None:
    check_integer("crossings", crossings, 1)
    check_integer("neurons", neurons, 1)
    for name in ("hidden_rate", "step", "longest"):
        value = options.get(name, 1.0)
        if not 0 < value < math.inf:
            raise ValueError(f"{name} = {value}: must be finite and > 0")


def _check_erf(system: TwoLayerNetwork, crossings: int = 8, **options: float) -> None:
    _check(system, crossings, neurons=1, **options)
    if not isinstance(system.activation, Erf):
        raise ValueError(
            f"TwoLayerNetwork.activation = {system.activation!r}: must be an error function, whose "
            "population loss is computed in closed form"
        )
    if system.absolute != 0:
        raise ValueError(f"TwoLayerNetwork.absolute = {system.absolute}: must be 0")


@experiment(check=_check)
def escaping_neurons(
    system: TwoLayerNetwork,
    key: PRNGKeyArray,
    *,
    hidden_rate: float = 1.0,
    neurons: int = 256,
    crossings: int = 64,
    step: float = 0.05,
    longest: float = 4000.0,
) -> Escapes:
    r"""Mean time in which independent neurons cross the barrier, by Langevin dynamics in the field
    of a network that has not specialised.

    $$ du = r \Big( -u + a \frac{\partial g}{\partial u} \Big) dt + \sqrt{2r}\, dB, \qquad
       da = (-a + g)\, dt + \sqrt{2}\, dB', \qquad g = \sqrt{s/N}\; \tau \cdot m(w) $$

    in units of the prior, with the field $\tau$ of `escape_time` at the ridge T/n. A neuron that
    has crossed goes back to the centre, so that the mean time between crossings is that of the
    theory.

    Args:
        hidden_rate: rate r of the hidden weights over that of the read-out, as in `escape_time`.
            Default 1.
        neurons: number of neurons. Default 256.
        crossings: number of crossings after which the run ends. Default 64.
        step: step size in units of time. Default 0.05.
        longest: time after which the run ends in any case, in relaxation times of the hidden
            weights. Default 4000.

    Raises:
        ValueError: for numbers that are not finite and positive.

    Accuracy: statistical, 1/sqrt(crossings), and of first order in the step.

    Source: Kramers (1940) for the problem; derived here for the neurons of a network.

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> cubic = hermite_target({3: 1.0}, normalised=True)
    >>> network = TwoLayerNetwork(30, 320, 1000, 0.0025, cubic, readout_variance=1e-4)
    >>> found = escaping_neurons(network, jax.random.key(0), neurons=64, crossings=4)
    >>> bool(found.converged)
    True
    """
    layer = system.hidden
    likelihood = IndependentNeurons(layer, held_at(layer, layer.ridge).tau)
    settings = {"hidden_rate": hidden_rate, "step": step, "longest": longest}
    return _escapes(system, likelihood, neurons, key, settings, crossings, returned=True)


@experiment(check=_check_erf)
def escaping_network(
    system: TwoLayerNetwork,
    key: PRNGKeyArray,
    *,
    hidden_rate: float = 1.0,
    crossings: int = 8,
    returned: bool = False,
    step: float = 0.1,
    longest: float = 4000.0,
) -> Escapes:
    r"""Mean time in which neurons of a network of erf units cross the barrier while few have
    crossed, by Langevin dynamics on the population loss.

    Both layers are trained on $L = \frac{n}{2} E (f - y)^2$, in closed form, with the temperature,
    the weight decay and the time of `langevin_training`; there is no training set. All neurons
    start at the centre, settle for three relaxation times of the hidden weights, in which those
    that cross go back to the centre, and are then counted until `crossings` have crossed.

    Args:
        hidden_rate: rate r of the hidden weights over that of the read-out, as in `escape_time`.
            Default 1.
        crossings: number of crossings after which the run ends. Default 8.
        returned: whether neurons that have crossed go back to the centre, so that the network
            stays as it is before specialisation. Default False.
        step: step size in units of time. Default 0.1.
        longest: time after which the run ends in any case, in relaxation times of the hidden
            weights. Default 4000.

    Raises:
        ValueError: for numbers that are not finite and positive, for an activation that is not an
            error function, and for a target with a part |z|.

    Accuracy: statistical, 1/sqrt(crossings), and of first order in the step. The field falls with
    every neuron that has crossed and is not returned.

    Source: Rubin, Seroussi, Ringel (2024) for the barrier; derived here.

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> cubic = hermite_target({3: 1.0}, normalised=True)
    >>> network = TwoLayerNetwork(30, 64, 1000, 0.0125, cubic, readout_variance=5e-4)
    >>> found = escaping_network(network, jax.random.key(0), crossings=1)
    >>> bool(found.converged)
    True
    """
    settings = {"hidden_rate": hidden_rate, "step": step, "longest": longest}
    return _escapes(
        system,
        PopulationLoss(system.hidden),
        system.size("width"),
        key,
        settings,
        crossings,
        returned,
    )
