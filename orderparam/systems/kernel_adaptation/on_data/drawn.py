"""Theories and the sampler on the same drawn data."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.gaussian import hermite
from orderparam.sampling.result import FromChains
from orderparam.systems.kernel_adaptation.modes.observables import OnModes, on_modes
from orderparam.systems.kernel_adaptation.on_data.experiment import SampledOnData
from orderparam.systems.kernel_adaptation.on_data.model import NetworkOnData
from orderparam.systems.kernel_adaptation.on_data.theory import DataPrediction, gaussian_weights_on_data
from orderparam.systems.kernel_adaptation.two_layers.experiment.data import TEST_POINTS, draw_data, training_set
from orderparam.systems.kernel_adaptation.two_layers.experiment.sampled import sampled_network
from orderparam.systems.kernel_adaptation.two_layers.model import ScaledNetwork, TwoLayerNetwork


class SolvedOnDrawnData(OnModes):
    """By a theory, on one drawn training set. output: f_k, least squares of the mean output on the kept h_k over test points that
    come in fours (+-z, +-x_perp), so that whatever is odd across w_* drops out."""

    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class SampledOnDrawnData(OnModes, FromChains):
    """By the sampler, the fields of `SampledTwoLayerNetwork` that have the same shape at every scale."""


def network_on(system: TwoLayerNetwork, x: Array, y: Array, x_test: Array, y_test: Array) -> NetworkOnData:
    """The same network on these data."""
    shared = ("width", "temperature", "readout_variance", "weight_variance", "activation")
    return NetworkOnData(x, y, x_test, y_test, **{name: getattr(system, name) for name in shared})


def draw_network(system: TwoLayerNetwork, key: PRNGKeyArray, n_test: int = TEST_POINTS) -> NetworkOnData:
    """The same network on a training set of its size drawn at random, w_* the first axis."""
    train, test = jax.random.split(key)
    return network_on(system, *draw_data(system, train, system.size("n_train")), *draw_data(system, test, n_test))


@experiment
def sampled_at_scale(
    system: ScaledNetwork, key: PRNGKeyArray, *, warmup: int = 150, samples: int = 200, trajectory: float = 2.0
) -> SampledOnDrawnData:
    """The network itself: see `sampled_network` for the options."""
    found = sampled_network(system.drawn, key, warmup=warmup, samples=samples, trajectory=trajectory)
    return SampledOnDrawnData(**{name: getattr(found, name) for name in SampledOnDrawnData.dims()})


@experiment
def solved_on_drawn_data(
    system: ScaledNetwork | TwoLayerNetwork,
    key: PRNGKeyArray,
    *,
    theory: Callable[[NetworkOnData], DataPrediction | SampledOnData] = gaussian_weights_on_data,
    quartets: int = 2500,
) -> SolvedOnDrawnData:
    """A theory on the training set that `sampled_at_scale` or `sampled_network` draws with the same key: the two differ by the
    theory alone.

    quartets: number of test points / 4.
    """
    at = system.drawn if isinstance(system, ScaledNetwork) else system
    layer = at.hidden
    train, test = training_set(at, key), jax.random.fold_in(key, 3)  # past the three keys of the sampler
    quarter = jax.random.normal(test, (quartets, at.size("input_dim")))
    flip = jnp.ones(quarter.shape[1]).at[0].set(-1.0)
    x = jnp.concatenate([quarter, -quarter, flip * quarter, -flip * quarter])
    found = theory(network_on(at, *train, x, layer.target(x[:, 0])))
    basis = jnp.stack([hermite(k, x[:, 0]) for k in layer.degrees], axis=1)
    output = jnp.linalg.lstsq(basis, found.mean)[0]
    return SolvedOnDrawnData(**on_modes(layer, output, found.spread), residual=found.residual, converged=found.converged)
