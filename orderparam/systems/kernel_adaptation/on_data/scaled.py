"""One family of networks: input dimension, width and training examples in proportion, and all theories on the same drawn data.

With d, N and n proportional to beta, at fixed temperature and variances, the signal A = s n/(T d) and the adaptation
U = n^2 s/(T^2 d N) of a `TwoLayerNetwork` stay the same (s the read-out variance). What needs n ~ d is then learned alike at
every beta, and what needs n ~ d^2 is lost as beta grows. Rubin, Fischer, Lindner, Dahmen, Seroussi, Ringel, Krämer, Helias 2025.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.system import System, parameter
from orderparam.gaussian import hermite
from orderparam.systems.kernel_adaptation.on_data.theory import DataPrediction
from orderparam.systems.kernel_adaptation.two_layers.experiment.data import network_on, training_set
from orderparam.systems.kernel_adaptation.two_layers.experiment.sampled import sampled_network
from orderparam.systems.kernel_adaptation.two_layers.model import NetworkOnData, Number, TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.theory.prediction import Prediction, shares


class ScaledNetwork(System):
    """`network` with its input_dim, width and n_train multiplied by `scale` (beta)."""

    network: TwoLayerNetwork
    scale: Number = parameter("factor beta of input dimension, width and training examples", above=0)

    @property
    def scaled(self) -> TwoLayerNetwork:
        """The network at this scale."""
        at = self.network
        return at.with_(input_dim=self.scale * at.input_dim, width=self.scale * at.width, n_train=self.scale * at.n_train)

    @property
    def drawn(self) -> TwoLayerNetwork:
        """The same with whole sizes, for experiments: the nearest ones."""
        at = self.scaled
        return at.with_(input_dim=round(at.input_dim), width=round(at.width), n_train=round(at.n_train))


def averaged_at_scale(system: ScaledNetwork, theory: Callable[[TwoLayerNetwork], Prediction]) -> Prediction:
    """A theory averaged over data."""
    return theory(system.scaled)


class OnDrawnData(Result):
    """One drawn training set: fields as in the theories averaged over data, and of the same shape at every scale."""

    degree: Float[Array, "mode"]
    output: Float[Array, "mode"]
    learnability: Float[Array, "mode"]
    total_learnability: Float[Array, ""]
    spread: Float[Array, ""]


class SolvedOnDrawnData(OnDrawnData):
    """By a theory. output: f_k, least squares of the mean output on the kept h_k over test points that come in fours
    (+-z, +-x_perp), so that whatever is odd across w_* drops out."""

    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class SampledOnDrawnData(OnDrawnData):
    """By the sampler; r_hat, effective_samples, converged: as in `SampledNetwork`."""

    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


def sampled_at_scale(system: ScaledNetwork, key: PRNGKeyArray, **options: Any) -> SampledOnDrawnData:
    """The network itself: see `sampled_network` for the options."""
    found = sampled_network(system.drawn, key, **options)
    return SampledOnDrawnData(**{field.name: getattr(found, field.name) for field in dataclasses.fields(SampledOnDrawnData)})


def solved_on_drawn_data(
    system: ScaledNetwork, key: PRNGKeyArray, theory: Callable[[NetworkOnData], DataPrediction], quartets: int = 2500
) -> SolvedOnDrawnData:
    """A theory on the training set that `sampled_at_scale` draws with the same key: the two differ by the theory alone.

    quartets: number of test points / 4. Not traceable.
    """
    at = system.drawn
    train, test = training_set(at, key), jax.random.fold_in(key, 3)  # past the three keys of the sampler
    quarter = jax.random.normal(test, (quartets, int(at.input_dim)))
    flip = jnp.ones(quarter.shape[1]).at[0].set(-1.0)
    x = jnp.concatenate([quarter, -quarter, flip * quarter, -flip * quarter])
    found = theory(network_on(at, *train, x, at.label(x[:, 0])))
    basis = jnp.stack([hermite(k, x[:, 0]) for k in at.kept], axis=1)
    output = jnp.linalg.lstsq(basis, found.mean)[0]
    return SolvedOnDrawnData(**shares(at, output), spread=found.spread, residual=found.residual, converged=found.converged)
