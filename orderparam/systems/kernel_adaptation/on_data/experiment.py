"""Experiments on given training sets: sampled networks, and theories and sampled networks that are
compared on the same randomly drawn training set.
"""

import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.fields import check_integer, is_number
from orderparam.core.verb import experiment, theory
from orderparam.gaussian import hermite
from orderparam.kernels.readout import log_evidence
from orderparam.sampling import Samples, estimate, sample
from orderparam.sampling.result import FromChains, of_chains
from orderparam.systems.kernel_adaptation.hermite_overlaps import overlaps
from orderparam.systems.kernel_adaptation.network import (
    Degrees,
    HiddenLayer,
    OnModes,
    check_chains,
    on_modes,
)
from orderparam.systems.kernel_adaptation.on_data.model import (
    NetworkOnData,
    OnTestSet,
    on_test_set,
    two_layers,
)
from orderparam.systems.kernel_adaptation.on_data.theory import (
    DataPrediction,
    gaussian_weights_on_data,
)
from orderparam.systems.kernel_adaptation.two_layers.experiment import (
    TEST_POINTS,
    draw_data,
    in_single,
    sampled_network,
    training_set,
)
from orderparam.systems.kernel_adaptation.two_layers.model import ScaledNetwork, TwoLayerNetwork

# ------------------------------------------------------------------------------------------------
# One sampler for the weights on a given training set. It samples the network, and it solves the
# theory of kernel adaptation for weights of any law, by particles.
#
# In kernel adaptation every neuron is an independent draw of exp(-S[w]),
#
#     S[w] = d |w|^2/(2v) - (s/2N) phi_w^T [ t t^T - (K + T)^{-1} ] phi_w,     phi_w = phi(X w),
#     K = s <phi_w phi_w^T>,   t = (K + T)^{-1} y,   f(x) = s <phi(w . x) phi_w>^T t           (1)
#
# (Seroussi, Naveh, Ringel 2023; v weight variance, s read-out variance). Take R N particles with
# the density
#
#     prod_c prior(w_c) * p(y | K_R)^R,
#     K_R = (s/(R N)) sum_c phi_c phi_c^T,   p(y | K) = N(y; 0, K + T).
#
# The gradient of R log p(y | K_R) with respect to one particle is the gradient of the interaction
# in (1) with K_R in place of K. For large R the average over particles does not fluctuate, so that
# the limit R -> infinity is the solution of (1), with t and K. For R = 1 the density is the
# posterior of the network itself with its read-out integrated out exactly. The sampler thus gives
# both the network and its theory. Their difference is the error of kernel adaptation itself,
# because the theory makes no ansatz for the weights (this construction is derived here). R need not
# be an integer.


_DEGREES: Degrees = (1, 2, 3)
_LEAST_IN_SINGLE = 1e-3  # temperature over read-out variance


class _Recorded(eqx.Module):
    mean: Float[Array, "test"]
    covariance: Float[Array, "input other"]
    kernel: Float[Array, "train second"]
    dual: Float[Array, "train"]
    modes: Float[Array, "mode"]


class Particles(eqx.Module):
    """Log density of whitened particles u, with w = sqrt(v/d) u: the log prior plus R times the log
    evidence.

    In single precision, the default, features and their products are rounded, which changes the
    density by 1e-7 of itself as long as the temperature is not far below the kernel; they take
    most of the time.
    """

    system: NetworkOnData
    replicas: float | Float[Array, ""]
    degrees: Degrees = eqx.field(static=True, default=_DEGREES)
    single: bool = eqx.field(static=True, default=True)

    def features(
        self, u: Float[Array, "particle input"], x: Float[Array, "example input"]
    ) -> Float[Array, "example particle"]:
        """Features sqrt(s/(R N)) phi(w . x) of the inputs x."""
        return self._amplitude(u) * self.system.activation(x @ self._weights(u).T)

    def __call__(self, u: Float[Array, "particle input"]) -> Float[Array, ""]:
        system, kind = self.system, jnp.float32 if self.single else jnp.float64
        phi = in_single(system.activation) if self.single else system.activation
        x, w, amplitude = (
            part.astype(kind) for part in (system.inputs, self._weights(u), self._amplitude(u))
        )
        features = amplitude * phi(x @ w.T)
        evidence = log_evidence(features, system.targets[:, None], system.temperature)
        return self.replicas * evidence - jnp.sum(u**2) / 2

    def _weights(self, u: Float[Array, "particle input"]) -> Float[Array, "particle input"]:
        return jnp.sqrt(self.system.weight_variance / u.shape[1]) * u

    def _amplitude(self, u: Float[Array, "particle input"]) -> Float[Array, ""]:
        return jnp.sqrt(self.system.readout_variance / u.shape[0])

    def record(self, u: Float[Array, "particle input"]) -> _Recorded:
        """The observables of one draw."""
        system = self.system
        features = self.features(u, system.inputs)
        kernel = features @ features.T
        dual = jsl.solve(
            kernel + system.temperature * jnp.eye(kernel.shape[0]), system.targets, assume_a="pos"
        )
        readout = features.T @ dual
        mean = self.features(u, system.test_inputs) @ readout
        w = self._weights(u)
        q = jnp.sum(w**2, axis=1)
        each = overlaps(system.activation, self.degrees, jnp.min(q), jnp.max(q))(w[:, 0], q)
        modes = self._amplitude(u) * jnp.stack([one @ readout for one in each])
        return _Recorded(mean, u.T @ u / u.shape[0], kernel, dual, modes)


class SampledOnData(OnTestSet, FromChains):
    """The posterior mean at the test points and the covariance of the weights, averaged over
    sampled particles.

    Fields:
        total_learnability_error: standard error of the Markov chains.
        projections_error: standard errors of the Markov chains.
        spread_error: standard error of the Markov chains.
        modes: E_x f h_k for the normalised Hermite polynomials of w_* . x of the chosen degrees,
            exact averages over Gaussian inputs.
        residual: |(<K_R> + T) <t> - y| / |y| with t = (K_R + T)^{-1} y: the error of kernel
            adaptation due to the fluctuations of K_R, which falls as 1/R.
        r_hat: largest R-hat of learnability, R_1, R_2 and spread over all chains, half of which
            start from the prior and half from the Gaussian weights of the variational theory.
        effective_samples: smallest effective sample size of the same observables.
    """

    total_learnability_error: Float[Array, ""]
    projections_error: Float[Array, "degree"]
    spread_error: Float[Array, ""]
    modes: Float[Array, "mode"]
    residual: Float[Array, ""]


_HIGHEST = 20  # degree


def _check_degrees(degrees: object) -> None:
    if (
        not isinstance(degrees, tuple)
        or not degrees
        or not all(isinstance(k, int) and 0 <= k <= _HIGHEST for k in degrees)
    ):
        raise ValueError(
            f"degrees = {degrees!r:.80}: must be a tuple of integers from 0 to {_HIGHEST}, such as "
            "(1, 3)"
        )


def _check(
    system: NetworkOnData,
    replicas: int = 1,
    chains: int = 2,
    degrees: Degrees = _DEGREES,
    **_: object,
) -> None:
    check_integer("replicas", replicas, 1)
    check_chains(system, chains)
    _check_degrees(degrees)
    two_layers(system)


@experiment(check=_check)
def sampled_on_data(
    system: NetworkOnData,
    key: PRNGKeyArray,
    *,
    replicas: int = 1,
    chains: int = 2,
    warmup: int = 100,
    samples: int = 120,
    trajectory: float = 2.5,
    degrees: Degrees = _DEGREES,
) -> SampledOnData:
    r"""Posterior averages of a network on a given training set, by Hamiltonian Monte Carlo with the
    read-out integrated out exactly.

    With R = `replicas`, the density of the R N particles $w_c$ is

    $$ \prod_c \mathrm{prior}(w_c)\; p(y \mid K_R)^R, \qquad
       K_R = \frac{s}{RN} \sum_c \phi_c \phi_c^T, \qquad p(y \mid K) = N(y; 0, K + T) $$

    R = 1 is the posterior of the network itself; R -> infinity is kernel adaptation
    (`adapted_weights_on_data`).

    Args:
        replicas: number R of replicas, an integer >= 1. Default 1.
        chains: even number of chains. Default 2.
        warmup: steps of a chain that tune the step size and are discarded. Default 100.
        samples: draws of every chain. Default 120.
        trajectory: length of a trajectory in units of the prior widths; the weights are wider by
            sqrt(spread) along w_*. Default 2.5.
        degrees: degrees k of `modes`, from 0 to 20. Default (1, 2, 3).

    Raises:
        ValueError: unless replicas is an integer >= 1, chains is even, the width is an integer and
            degrees is a tuple of integers from 0 to 20.

    Accuracy: statistical; see `r_hat` and `effective_samples`.

    Source: derived here; the density of one neuron is that of Seroussi, Naveh, Ringel (2023).

    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> data = NetworkOnData(x[:5], x[:5, 0], x[5:], x[5:, 0], 8, 0.5, activation="linear")
    >>> found = sampled_on_data(data, jax.random.key(0), warmup=20, samples=8)
    >>> found.mean.shape
    (3,)
    """
    lengths = {"chains": chains, "warmup": warmup, "samples": samples, "trajectory": trajectory}
    return _sampled(system, key, replicas * system.size("width"), degrees, lengths)


def check_particles(
    system: NetworkOnData, particles: int = 400, chains: int = 2, **_: object
) -> None:
    """Refuse fewer particles than units, and an odd number of chains.

    Raises:
        ValueError: for fewer particles than units, or an odd number of chains.
    """
    check_chains(system, chains)
    if not is_number(system.width) or system.width > particles:
        raise ValueError(
            f"{type(system).__name__}.width = {system.width}: must be at most particles = "
            f"{particles}"
        )


def _check_theory(system: NetworkOnData, degrees: Degrees = _DEGREES, **options: Any) -> None:
    two_layers(system)
    _check_degrees(degrees)
    check_particles(system, **options)


@theory(traced=False, differentiable=False, check=_check_theory)
def adapted_weights_on_data(
    system: NetworkOnData,
    *,
    particles: int = 400,
    chains: int = 2,
    warmup: int = 100,
    samples: int = 120,
    trajectory: float = 2.5,
    degrees: Degrees = _DEGREES,
    seed: int = 0,
) -> SampledOnData:
    r"""Kernel adaptation on a given training set for weights with their full distribution, by
    particles.

    Every neuron is an independent draw of $e^{-S[w]}$,

    $$ S[w] = \frac{d |w|^2}{2v} - \frac{s}{2N}\, \phi_w^T \big[ t t^T - (K + T)^{-1} \big] \phi_w,
       \qquad K = s \langle \phi_w \phi_w^T \rangle, \qquad t = (K + T)^{-1} y $$

    with $\phi_w = \phi(X w)$ on the training inputs, N the `width`, v the `weight_variance`, s the
    `readout_variance` and T the `temperature`. The solution is the limit R -> infinity of
    `sampled_on_data`; it is approximated at R = particles / width.

    Args:
        particles: number R N of particles, at least `width`. Default 400.
        chains: even number of chains. Default 2.
        warmup: steps of a chain that tune the step size and are discarded. Default 100.
        samples: draws of every chain. Default 120.
        trajectory: length of a trajectory in units of the prior widths. Default 2.5.
        degrees: degrees k of `modes`, from 0 to 20. Default (1, 2, 3).
        seed: seed of the random numbers, which are the same for every system. Default 0.

    Raises:
        ValueError: for an odd number of chains, for fewer particles than units, for degrees that
            are not a tuple of integers from 0 to 20, and for a network with several hidden layers.

    Accuracy: errors of order 1/R, plus those of the Markov chains. Not differentiable.

    Source: Seroussi, Naveh, Ringel (2023) for the equations; the particles are derived here.

    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> data = NetworkOnData(x[:5], x[:5, 0], x[5:], x[5:, 0], 4, 0.5, activation="linear")
    >>> adapted_weights_on_data(data, particles=8, warmup=20, samples=8).mean.shape
    (3,)
    """
    lengths = {"chains": chains, "warmup": warmup, "samples": samples, "trajectory": trajectory}
    return _sampled(system, jax.random.key(seed), particles, degrees, lengths)


def _sampled(
    system: NetworkOnData,
    key: PRNGKeyArray,
    particles: int,
    degrees: Degrees,
    lengths: dict[str, Any],
) -> SampledOnData:
    start_key, run_key = jax.random.split(key)
    density, chains = (
        Particles(
            system, jnp.asarray(particles / system.width), degrees, _in_single_precision(system)
        ),
        lengths.pop("chains"),
    )
    # Half of the chains start from the prior, half from the Gaussian weights of the theory: if they
    # agree, the chains have forgotten their initial states.
    draws = jax.random.normal(start_key, (chains, particles, system.inputs.shape[1]))
    root = jnp.linalg.cholesky(gaussian_weights_on_data(system).covariance)
    starts = jnp.concatenate([draws[: chains // 2], draws[chains // 2 :] @ root.T])
    return _summary(system, sample(density, starts, run_key, observe=density.record, **lengths))


def _in_single_precision(system: NetworkOnData) -> bool:
    """Whether the temperature is large enough that rounded products of features do not change
    (K + T)^{-1}: K is of the order of the read-out variance."""
    temperature, variance = system.temperature, system.readout_variance
    if not (is_number(temperature) and is_number(variance)):
        return False
    return float(temperature) >= _LEAST_IN_SINGLE * float(variance)


def _summary(system: NetworkOnData, run: Samples) -> SampledOnData:
    y, recorded = system.targets, run.observables
    every = jax.vmap(jax.vmap(lambda mean, covariance: on_test_set(system, mean, covariance)))(
        recorded.mean, recorded.covariance
    )
    columns = [
        every["total_learnability"][..., None],
        every["spread"][..., None],
        every["projections"],
    ]
    health = estimate(jnp.concatenate(columns, axis=-1))
    averages = jax.tree.map(lambda values: jnp.mean(values, axis=(0, 1)), recorded)
    # Kernel adaptation replaces <K_R t> by <K_R> <t>. The difference of these two averages measures
    # the effect of a finite R.
    missed = averages.kernel @ averages.dual + system.temperature * averages.dual - y
    return SampledOnData(
        **on_test_set(system, averages.mean, averages.covariance),
        # R_3 is not monitored, because not every target has this component
        **of_chains(run, jax.tree.map(lambda part: part[:4], health)),
        total_learnability_error=health.standard_error[0],
        spread_error=health.standard_error[1],
        projections_error=health.standard_error[2:],
        modes=averages.modes,
        residual=jnp.linalg.norm(missed) / jnp.linalg.norm(y),
    )


# ------------------------------------------------------------------------------------------------
# Theories and sampled networks on the same randomly drawn training set.


class SolvedOnDrawnData(OnModes):
    """The output on the modes as a theory predicts it on one drawn training set.

    `output` is f_k: exact for theories that give projections themselves, otherwise from a
    least-squares regression of the mean output on the kept h_k over test points that come in
    quartets (+-z, +-x_perp), so that functions that are odd in x_perp cancel.

    Fields:
        residual: residual of the theory.
        converged: whether the theory converged.
    """

    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class SampledOnDrawnData(OnModes, FromChains):
    """Output on the modes of a sampled network at its scale. The fields are those of
    `SampledTwoLayerNetwork` whose shape does not depend on the scale.
    """


def network_on(
    system: TwoLayerNetwork, x: Array, y: Array, x_test: Array, y_test: Array
) -> NetworkOnData:
    """The network on the given training and test data."""
    shared = ("width", "temperature", "readout_variance", "weight_variance", "activation")
    return NetworkOnData(x, y, x_test, y_test, **{name: getattr(system, name) for name in shared})


def draw_network(
    system: TwoLayerNetwork, key: PRNGKeyArray, n_test: int = TEST_POINTS
) -> NetworkOnData:
    """The network on a training set of its size that is drawn at random. The first input axis is
    w_*.

    Args:
        n_test: number of test points. Default 2000.
    """
    train, test = jax.random.split(key)
    return network_on(
        system, *draw_data(system, train, system.size("n_train")), *draw_data(system, test, n_test)
    )


@experiment
def sampled_at_scale(
    system: ScaledNetwork,
    key: PRNGKeyArray,
    *,
    warmup: int = 150,
    samples: int = 200,
    trajectory: float = 2.0,
) -> SampledOnDrawnData:
    """Posterior averages of the network at its scale, by Hamiltonian Monte Carlo.

    The network is `system.drawn`, with rounded sizes; the sampler is that of `sampled_network`,
    with two chains.

    Args:
        warmup: steps of a chain that tune the step size and are discarded. Default 150.
        samples: draws of every chain. Default 200.
        trajectory: length of a trajectory in units of the prior widths. Default 2.

    Source: Rubin et al. (2025).

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(3, 6, 6, 1.0, hermite_target({1: 1.0}), activation="linear")
    >>> scaled = ScaledNetwork(network, scale=1.0)
    >>> sampled_at_scale(scaled, jax.random.key(0), samples=8).output.shape
    (1,)
    """
    found = sampled_network(
        system.drawn, key, warmup=warmup, samples=samples, trajectory=trajectory
    )
    return SampledOnDrawnData(**{name: getattr(found, name) for name in SampledOnDrawnData.dims()})


@experiment
def solved_on_drawn_data(
    system: ScaledNetwork | TwoLayerNetwork,
    key: PRNGKeyArray,
    *,
    theory: Callable[[NetworkOnData], DataPrediction | SampledOnData] = gaussian_weights_on_data,
    quartets: int = 2500,
) -> SolvedOnDrawnData:
    """Output on the modes that a theory predicts on one random training set.

    The training set is the one that `sampled_at_scale` or `sampled_network` draws with the same
    key, so that the two differ by the theory alone.

    Args:
        theory: theory or sampler on given data. Default `gaussian_weights_on_data`. One that has
            an option `degrees`, as `adapted_weights_on_data` does, gives the projections itself.
        quartets: number of test points divided by 4, for other theories. Default 2500.

    Source: derived here.

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import gaussian_process_on_data, hermite_target
    >>> network = TwoLayerNetwork(3, 6, 6, 1.0, hermite_target({1: 1.0}), activation="linear")
    >>> options = {"theory": gaussian_process_on_data, "quartets": 10}
    >>> solved_on_drawn_data(network, jax.random.key(0), **options).output.shape
    (1,)
    """
    at = system.drawn if isinstance(system, ScaledNetwork) else system
    layer = at.hidden
    # a key for the test points that the sampler does not use
    train, test = training_set(at, key), jax.random.fold_in(key, 3)
    if "degrees" in inspect.signature(theory).parameters:
        own: Callable[..., Any] = theory
        exact = own(network_on(at, *train, *train), degrees=layer.degrees)
        return _solved(layer, exact.modes, exact)
    # Every test point comes with its mirror images along w_* and orthogonal to it, so that
    # functions that are odd in the orthogonal components cancel exactly.
    quarter = jax.random.normal(test, (quartets, at.size("input_dim")))
    flip = jnp.ones(quarter.shape[1]).at[0].set(-1.0)
    x = jnp.concatenate([quarter, -quarter, flip * quarter, -flip * quarter])
    found = theory(network_on(at, *train, x, layer.target(x[:, 0])))
    basis = jnp.stack([hermite(k, x[:, 0]) for k in layer.degrees], axis=1)
    return _solved(layer, jnp.linalg.lstsq(basis, found.mean)[0], found)


def _solved(
    layer: HiddenLayer, output: Array, found: DataPrediction | SampledOnData
) -> SolvedOnDrawnData:
    return SolvedOnDrawnData(
        **on_modes(layer, output, found.spread), residual=found.residual, converged=found.converged
    )
