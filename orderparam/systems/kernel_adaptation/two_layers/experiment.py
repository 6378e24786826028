"""Two-layer networks sampled from their posterior by Hamiltonian Monte Carlo, on data drawn from
the input distribution of the theory.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.gaussian import Activation
from orderparam.gaussian.arcsine import Erf
from orderparam.kernels.readout import condition_readout
from orderparam.sampling import Samples, estimate, sample
from orderparam.sampling.result import FromChains, of_chains
from orderparam.systems.kernel_adaptation.gaussianity import along_directions
from orderparam.systems.kernel_adaptation.hermite_overlaps import overlaps
from orderparam.systems.kernel_adaptation.network import HOMOGENEOUS, HiddenLayer, OnModes, on_modes
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork

# ------------------------------------------------------------------------------------------------
# Training and test sets drawn from the input distribution of the theory.

TEST_POINTS = 2000


def draw_data(system: TwoLayerNetwork, key: PRNGKeyArray, count: int) -> tuple[Array, Array]:
    """Inputs x ~ N(0, 1_d), shape (count, input), and their targets without noise. The first input
    axis is w_*.
    """
    x = jax.random.normal(key, (count, system.size("input_dim")))
    return x, system.hidden.target(x[:, 0])


def training_set(system: TwoLayerNetwork, key: PRNGKeyArray) -> tuple[Array, Array]:
    """The training set that `sampled_network` and `langevin_training` draw with this key."""
    return draw_data(system, jax.random.split(key, 3)[0], system.size("n_train"))


# ------------------------------------------------------------------------------------------------
# The posterior of a two-layer network: the joint density of the weights of both layers, which is
# sampled, and the exact mean of the read-out given the hidden weights.


class TwoLayerWeights(NamedTuple):
    """Weights in units of their prior: w = sqrt(weight_variance / d) hidden, a =
    sqrt(readout_variance / N) readout.
    """

    hidden: Float[Array, "unit input"]
    readout: Float[Array, "unit"]


class Recorded(eqx.Module):
    """Observables of one draw, averaged over the read-out. The first input axis is w_*."""

    output: Float[Array, "mode"]  # E_x f h_k
    directions: Float[Array, "direction unit"]  # w along w_*, and along the second axis
    moment: Float[Array, "input input"]  # sum_c w_c w_c^T / N


class TwoLayerPosterior(eqx.Module):
    r"""Log density of the weights u, v in units of their prior.

    $$ -\tfrac12 |u|^2 - \tfrac12 |v|^2 - \frac{1}{2T} |f - y|^2, \qquad f = \Phi v, \qquad
       \Phi = \sqrt{s/N}\, \phi(X w^T) $$

    The loss is computed in single precision: its rounding, 1e-7 of itself, changes acceptance
    probabilities by 1e-3 at most and costs a quarter of the time.
    """

    layer: HiddenLayer
    x: Float[Array, "train input"]
    y: Float[Array, "train"]

    def output(
        self, weights: TwoLayerWeights, x: Float[Array, "example input"]
    ) -> Float[Array, "example"]:
        """The outputs f, in single precision."""
        parts = x, self.layer.scale * weights.hidden, self.layer.amplitude * weights.readout
        x, w, a = (part.astype(jnp.float32) for part in parts)
        return in_single(self.layer.phi)(x @ w.T) @ a

    def __call__(self, weights: TwoLayerWeights) -> Float[Array, ""]:
        loss = jnp.sum((self.output(weights, self.x) - self.y.astype(jnp.float32)) ** 2) / 2
        prior = (jnp.sum(weights.hidden**2) + jnp.sum(weights.readout**2)) / 2
        return -prior - loss.astype(float) / self.layer.temperature

    def readout(self, u: Float[Array, "unit input"]) -> Float[Array, "unit"]:
        """Posterior mean of a_c given the hidden weights."""
        phi = self.layer.amplitude * self.layer.phi(self.x @ (self.layer.scale * u).T)
        count, units = phi.shape
        if count <= units:
            return (
                self.layer.amplitude
                * condition_readout(phi, self.y[:, None], self.layer.temperature).mean[:, 0]
            )
        precision = phi.T @ phi + self.layer.temperature * jnp.eye(units)
        return self.layer.amplitude * jsl.cho_solve(jsl.cho_factor(precision), phi.T @ self.y)

    def mode_outputs(
        self, u: Float[Array, "unit input"], a: Float[Array, "unit"]
    ) -> Float[Array, "mode"]:
        """Components E_x f h_k of the output on the modes of the theory, averaged over the whole
        input distribution."""
        w = self.layer.scale * u
        q = jnp.sum(w**2, axis=1)
        m = overlaps(self.layer.phi, self.layer.degrees, jnp.min(q), jnp.max(q))(w[:, 0], q)
        return jnp.stack([a @ one for one in m])

    def record(self, weights: TwoLayerWeights) -> Recorded:
        """The observables of one draw."""
        u = weights.hidden
        w = self.layer.scale * u
        return Recorded(self.mode_outputs(u, self.readout(u)), w[:, :2].T, w.T @ w / w.shape[0])

    def starts(self, chains: int, informed: int, key: PRNGKeyArray) -> TwoLayerWeights:
        """Initial states of the chains: prior draws. In the last `informed` chains half of the
        neurons are at w = w_* and half at -w_*, plus a prior draw of the components orthogonal to
        w_*.
        """
        hidden_key, readout_key = jax.random.split(key)
        draws = jax.random.normal(hidden_key, (chains, int(self.layer.width), self.x.shape[1]))
        signs = jnp.where(jnp.arange(draws.shape[1]) % 2 == 0, 1.0, -1.0) / self.layer.scale
        planted = draws.at[:, :, 0].set(jnp.broadcast_to(signs, draws.shape[:2]))
        hidden = jnp.where((jnp.arange(chains) >= chains - informed)[:, None, None], planted, draws)
        return TwoLayerWeights(hidden, jax.random.normal(readout_key, hidden.shape[:2]))


def in_single(phi: Activation) -> Callable[[Array], Array]:
    """The activation as a function from float32 to float32; the erf and the homogeneous activations
    are computed without float64.
    """
    if isinstance(phi, Erf):
        return lambda z: jax.lax.erf(phi.gain * z)
    if isinstance(phi, HOMOGENEOUS):
        right, left = (jnp.asarray(sign * phi(sign), jnp.float32) for sign in (1.0, -1.0))
        return lambda z: jnp.where(z > 0, right, left) * z
    return lambda z: phi(z).astype(z.dtype)


# ------------------------------------------------------------------------------------------------
# The posterior of the network itself by Hamiltonian Monte Carlo, and the law of its hidden weights.

Start = Literal["both", "prior", "informed"]
EDGES = np.linspace(-2.5, 2.5, 82)  # edges of the bins of w . w_*
FAR = 0.5  # neurons with a larger |w . w_*| count as `outside`


class SampledTwoLayerNetwork(OnModes, FromChains):
    """Averages over the posterior of a two-layer network on one training set.

    `output` is E_x f h_k of the posterior mean f over the whole input distribution (not over test
    points). The dimension "direction" contains w_* and a fixed direction orthogonal to it.

    Fields:
        norm: <|w|^2>.
        eigenvalues: eigenvalues of d <w w^T> / weight_variance, in decreasing order. Without
            adaptation all of them are 1; with adaptation one eigenvalue, along w_*, is larger than
            the others.
        outside: probability of |w . w_*| > 1/2.
        bin_centre: centres of bins of equal width over (-2.5, 2.5).
        density: density of the weights along each direction in these bins.
        excess_kurtosis: excess kurtosis of the weights along each direction.
        kurtosis_error: standard error of `excess_kurtosis`.
        p_value: p-value of the weights along each direction being Gaussian (see `gaussianity`).
        r_hat: largest R-hat of output, spread and outside over all chains, half of which start with
            every neuron along w_*.
        effective_samples: smallest effective sample size of the same observables. The norm has
            about a third as many, because it follows the energy, which changes only when the
            momenta are drawn.
        start_gap: largest difference of an average between the chains that start from the prior and
            those that start from w_*, in standard errors.
    """

    norm: Float[Array, ""]
    eigenvalues: Float[Array, "eigenvalue"]
    outside: Float[Array, ""]
    bin_centre: Float[Array, "bin"]
    density: Float[Array, "direction bin"]
    excess_kurtosis: Float[Array, "direction"]
    kurtosis_error: Float[Array, "direction"]
    p_value: Float[Array, "direction"]
    start_gap: Float[Array, ""]


def _check(system: TwoLayerNetwork, chains: int = 2, start: Start = "both", **_: Any) -> None:
    if start == "both" and chains < 2:
        raise ValueError(f"chains = {chains}: must be at least 2 for start = 'both'")


@experiment(check=_check)
def sampled_network(
    system: TwoLayerNetwork,
    key: PRNGKeyArray,
    *,
    chains: int = 2,
    warmup: int = 150,
    samples: int = 200,
    trajectory: float = 2.0,
    start: Start = "both",
) -> SampledTwoLayerNetwork:
    """Posterior averages of a two-layer network on one random training set, by Hamiltonian Monte
    Carlo on both layers.

    The density is that of `TwoLayerNetwork`, with all weights in units of their prior.

    Args:
        chains: number of chains; with start "both" at least 2. Default 2.
        warmup: steps of a chain that tune the step size and are discarded. Default 150.
        samples: draws of every chain. Default 200.
        trajectory: length of a trajectory in units of the prior widths. Default 2. Along w_* the
            posterior is wider than the prior by sqrt(spread), a factor of 2 to 3 where features are
            learned. Shorter trajectories move diffusively along this direction, and the output is
            then the slowest observable.
        start: "both" (default) starts the first half of the chains from the prior and the other
            half with every neuron at w = +-w_* plus a prior draw of the orthogonal components;
            "prior" and "informed" start all chains in one of these ways.

    Raises:
        ValueError: for fewer than two chains with start "both".

    Accuracy: statistical; see `r_hat`, `effective_samples` and `start_gap`.

    Cost: the output on the training set is the stiffest direction and limits the step size, to 0.2
    for the erf networks of the studies and to 0.1 for the relu networks.

    Source: Rubin, Seroussi, Ringel (2024); Rubin et al. (2025).

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(3, 6, 6, 1.0, hermite_target({1: 1.0}), activation="linear")
    >>> found = sampled_network(network, jax.random.key(0), samples=8)
    >>> found.density.shape, found.eigenvalues.shape
    ((2, 81), (3,))
    """
    _, start_key, run_key = jax.random.split(key, 3)
    posterior = TwoLayerPosterior(system.hidden, *training_set(system, key))
    informed = chains // 2 if start == "both" else chains * (start == "informed")
    run = sample(
        posterior,
        posterior.starts(chains, informed, start_key),
        run_key,
        warmup=warmup,
        samples=samples,
        trajectory=trajectory,
        observe=posterior.record,
    )
    return _summary(system.hidden, run, informed)


def _summary(layer: HiddenLayer, run: Samples, informed: int) -> SampledTwoLayerNetwork:
    """Averages, convergence and tests of the recorded draws; the last `informed` chains started
    along w_*.
    """
    recorded = run.observables
    rho, moment = recorded.directions[..., 0, :], np.asarray(recorded.moment).mean(axis=(0, 1))
    unit = layer.dim / layer.weight_variance
    far = jnp.mean(jnp.abs(rho) > FAR, axis=-1)
    scalars = jnp.concatenate(
        [recorded.output, unit * jnp.mean(rho**2, axis=-1)[..., None], far[..., None]], axis=-1
    )
    health = estimate(scalars)
    directions = [np.asarray(recorded.directions[..., i, :]) for i in range(2)]
    shape = along_directions(directions)
    return SampledTwoLayerNetwork(
        **on_modes(layer, health.mean[:-2], health.mean[-2]),
        **of_chains(run, health),
        norm=jnp.asarray(np.trace(moment)),
        eigenvalues=unit * np.linalg.eigvalsh(moment)[::-1],
        outside=health.mean[-1],
        bin_centre=jnp.asarray((EDGES[1:] + EDGES[:-1]) / 2),
        # values beyond the bins count in the normalisation only
        density=jnp.stack(
            [np.histogram(values, EDGES)[0] / values.size / np.diff(EDGES) for values in directions]
        ),
        excess_kurtosis=shape.excess_kurtosis,
        kurtosis_error=shape.kurtosis_error,
        p_value=shape.p_value,
        start_gap=_start_gap(scalars, ~health.constant, informed),
    )


def _start_gap(
    values: Float[Array, "chain draw observable"], moves: Array, informed: int
) -> Float[Array, ""]:
    chains = values.shape[0]
    if not 0 < informed < chains:
        return jnp.asarray(jnp.nan)
    prior, other = estimate(values[: chains - informed]), estimate(values[chains - informed :])
    error = jnp.sqrt(prior.standard_error**2 + other.standard_error**2)
    return jnp.max(jnp.abs(prior.mean - other.mean) / jnp.maximum(error, 1e-300) * moves)
