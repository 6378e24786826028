"""Number of examples that are needed to learn a component of the target: n ~ d if the weights
adapt, and n ~ d^k with a fixed kernel.

At fixed temperature and variances, with N ~ d neurons and n ~ d examples, the action of a neuron is
d times a function that does not depend on d. The share of the target that is learned therefore
depends on n/d alone. In a fixed kernel the component h_k has an eigenvalue ~ d^-k, so that n ~ d^k
examples are needed. Rubin, Seroussi, Ringel 2024; Rubin et al. 2025.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core import verb
from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.solve.root import decreasing_root
from orderparam.systems.kernel_adaptation.network import on_modes
from orderparam.systems.kernel_adaptation.on_data.experiment import SolvedOnDrawnData
from orderparam.systems.kernel_adaptation.patches.experiment import (
    SampledPatches,
    sampled_patches,
)
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
from orderparam.systems.kernel_adaptation.two_layers.all_modes import projections
from orderparam.systems.kernel_adaptation.two_layers.experiment import (
    sampled_network,
    training_set,
)
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import ModePrediction
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.theory import adapted_weights


class ExamplesNeeded(Result):
    """Number of examples at which the learnability of a mode reaches a threshold.

    Fields:
        examples: the number n.
        per_dimension: n / d.
        residual: residual of log learnability at n.
        converged: whether n was found.
    """

    examples: Float[Array, ""]
    per_dimension: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@verb.theory
def examples_needed(
    system: TwoLayerNetwork,
    *,
    theory: Callable[[TwoLayerNetwork], ModePrediction] = adapted_weights,
    mode: int = 1,
    threshold: float = 0.15,
    units_per_input: float | None = None,
    power: float = 1.0,
    most: float = 1e3,
) -> ExamplesNeeded:
    r"""Number of examples at which a theory averaged over data learns a mode to a threshold.

    $$ f_k(n) / y_k = \mathrm{threshold} $$

    is solved for n = `examples` between d and `most` * d^`power`, where the learnability must be
    positive.

    Args:
        theory: the theory averaged over data. Default `adapted_weights`.
        mode: index into the modes of the system. Default 1.
        threshold: the learnability to reach. Default 0.15.
        units_per_input: if given, the width is N = units_per_input d. Default None: the `width` of
            the system.
        power: power of d in the search range: 1 (default) for weights that adapt, k for a fixed
            kernel.
        most: largest n, in units of d^power. Default 1000.

    Accuracy: 1e-8 in log learnability.

    Cost: several tens of solutions of the theory.

    Source: Rubin, Seroussi, Ringel (2024); Rubin et al. (2025).

    >>> from orderparam.systems.kernel_adaptation import gaussian_process, hermite_target
    >>> network = TwoLayerNetwork(
    ...     20, 100, 400, 0.2, hermite_target({1: 1, 3: -0.3}), readout_variance=0.015
    ... )
    >>> found = examples_needed(network, theory=gaussian_process, mode=0, threshold=0.5)
    >>> round(float(found.per_dimension), 4)
    30.5222
    """
    d = system.input_dim
    if units_per_input is not None:
        system = system.with_(width=units_per_input * d)

    def missing(log_n: Array, system: TwoLayerNetwork) -> Array:
        return jnp.log(threshold / theory(system.with_(n_train=jnp.exp(log_n))).learnability[mode])

    root = decreasing_root(missing, jnp.log(d), jnp.log(most * d**power), system)
    return ExamplesNeeded(
        examples=jnp.exp(root.value),
        per_dimension=jnp.exp(root.value) / d,
        residual=root.residual,
        converged=root.converged,
    )


class MeasuredExamplesNeeded(ExamplesNeeded):
    """Number of examples at which sampled networks learn a mode to a threshold.

    Fields:
        examples: the number n, from the power law through the two measured points nearest to the
            threshold.
        residual: 0, since this is a measurement.
        ratio: n/d of each measured point.
        learnability: learnability of the mode at each measured point.
        r_hat: largest potential scale reduction of the runs.
        effective_samples: smallest effective sample size of the runs.
        converged: whether all runs are converged and the threshold lies between the measured
            learnabilities.
    """

    ratio: Float[Array, "measured"]
    learnability: Float[Array, "measured"]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]


@verb.experiment
def sampled_examples_needed(
    system: TwoLayerNetwork,
    key: PRNGKeyArray,
    *,
    mode: int = 1,
    threshold: float = 0.15,
    units_per_input: float = 5.0,
    ratios: tuple[float, ...] = (18.0, 36.0),
    samples: int = 300,
) -> MeasuredExamplesNeeded:
    """Number of examples at which sampled networks learn a mode to a threshold.

    Networks of width `units_per_input` * d are sampled at n = ratio * d for each of the ratios, on
    independent data; the threshold is interpolated by a power law.

    Args:
        mode: index into the modes of the system. Default 1.
        threshold: the learnability to reach. Default 0.15.
        units_per_input: width over d. Default 5.
        ratios: increasing values of n/d, at least two. Default (18, 36).
        samples: draws of every chain. Default 300.

    Cost: one `sampled_network` for each ratio.

    Source: Rubin, Seroussi, Ringel (2024).

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(3, 6, 6, 1.0, hermite_target({1: 1.0}), activation="linear")
    >>> options = {"mode": 0, "units_per_input": 2.0, "ratios": (2.0, 2.1), "samples": 8}
    >>> sampled_examples_needed(network, jax.random.key(0), **options).learnability.shape
    (2,)
    """
    d = system.size("input_dim")
    system = system.with_(width=round(units_per_input * d))
    keys = jax.random.split(key, len(ratios))
    runs = [
        sampled_network(system.with_(n_train=round(a * d)), one, samples=samples)
        for a, one in zip(ratios, keys)
    ]
    learned = np.asarray([float(run.learnability[mode]) for run in runs])
    above = int(np.clip(np.searchsorted(learned, threshold), 1, len(ratios) - 1))
    pair = slice(above - 1, above + 1)
    inside = bool(learned.min() < threshold < learned.max())
    heights, logs = np.log(np.maximum(learned[pair], 1e-6)), np.log(np.asarray(ratios)[pair])
    found = np.exp(
        logs[0] + (np.log(threshold) - heights[0]) * np.diff(logs)[0] / np.diff(heights)[0]
    )
    return MeasuredExamplesNeeded(
        examples=jnp.asarray(found * d),
        per_dimension=jnp.asarray(found),
        residual=jnp.zeros(()),
        converged=jnp.asarray(inside and all(bool(run.converged) for run in runs)),
        ratio=jnp.asarray(ratios),
        learnability=jnp.asarray(learned),
        r_hat=jnp.max(jnp.stack([run.r_hat for run in runs])),
        effective_samples=jnp.min(jnp.stack([run.effective_samples for run in runs])),
    )


# ------------------------------------------------------------------------------------------------
# Number of examples at which sampled networks, and the regression with their kernel at infinite
# width, have learned nearly all of a component of the target.

Learner = Callable[[TwoLayerNetwork, PRNGKeyArray], SolvedOnDrawnData | SampledPatches]
BEYOND = 2.0  # factor by which the threshold may lie outside the measured numbers of examples


def ridge_dual(
    kernel: Float[Array, "train train"],
    temperature: float | Float[Array, ""],
    targets: Float[Array, "train"],
) -> tuple[Float[Array, "train"], Float[Array, ""]]:
    """Solution (K + T)^-1 y, from one Cholesky factorisation, and relative error of the
    equation."""
    ridged = kernel + temperature * jnp.eye(kernel.shape[0])
    dual = jsl.cho_solve(jsl.cho_factor(ridged), targets)
    return dual, jnp.linalg.norm(ridged @ dual - targets) / jnp.linalg.norm(targets)


def regressed(system: TwoLayerNetwork, key: PRNGKeyArray) -> SolvedOnDrawnData:
    """The output on the modes of the infinitely wide network on one random training set: regression
    with its kernel, by one Cholesky factorisation. The average over inputs is exact."""
    return _on_examples(system, *training_set(system, key))


@eqx.filter_jit
def _on_examples(system: TwoLayerNetwork, x: Array, y: Array) -> SolvedOnDrawnData:
    layer = system.hidden
    gram = layer.weight_variance / layer.dim * x @ x.T
    power = jnp.diagonal(gram)
    kernel = layer.readout_variance * layer.phi.two_point(power[:, None], gram, power)
    dual, residual = ridge_dual(kernel, layer.temperature, y)
    return SolvedOnDrawnData(
        **on_modes(layer, projections(system, x) @ dual, jnp.ones(())),
        residual=residual,
        converged=residual < 1e-8,
    )


def sampled_hidden(
    system: TwoLayerNetwork, key: PRNGKeyArray, *, warmup: int = 150, samples: int = 400
) -> SampledPatches:
    """The output on the modes of a sampled network of odd units on one random training set.

    The read-out is integrated out exactly, which allows low temperatures. The sampler is that of
    `sampled_patches`, because a network of one patch is this two-layer network.
    """
    network = PatchNetwork(
        system.input_dim,
        1,
        system.width,
        system.n_train,
        system.temperature,
        system.target,
        system.readout_variance,
        system.weight_variance,
        system.modes,
        activation=system.activation,
    )
    return sampled_patches(network, key, warmup=warmup, samples=samples)


class MeasuredThreshold(ExamplesNeeded):
    """Number of examples at which a measured learnability reaches a threshold.

    Fields:
        examples: the number n, from the power law of the share not learned through the two
            measured points nearest to the threshold.
        residual: 0, since this is a measurement.
        ratio: n/d^power of each measured point.
        learnability: learnability of the mode at each measured point.
        converged: whether all runs are converged and n lies between the measured numbers of
            examples, or at most a factor 2 outside.
    """

    ratio: Float[Array, "measured"]
    learnability: Float[Array, "measured"]


@experiment
def measured_examples_needed(
    system: TwoLayerNetwork,
    key: PRNGKeyArray,
    *,
    learner: Learner = sampled_hidden,
    mode: int = 1,
    threshold: float = 0.9,
    units_per_input: float = 5.0,
    power: float = 1.0,
    ratios: tuple[float, ...] = (18.0, 36.0),
) -> MeasuredThreshold:
    r"""Number of examples at which a network, or the regression with its kernel, learns a mode to a
    threshold.

    The learner sees the first n = ratio $d^{power}$ examples of one random training set for each of
    the ratios. Between them the share that is not learned is a power law of n:

    $$ \log (1 - L(n)) = a - b \log n $$

    Args:
        learner: `sampled_hidden` (default), networks sampled with their read-out integrated out, or
            `regressed`, the infinitely wide network.
        mode: index into the modes of the system. Default 1.
        threshold: the learnability to reach. Default 0.9.
        units_per_input: width over d. Default 5.
        power: power of d to which the numbers of examples are proportional. Default 1.
        ratios: increasing values of n/d^power, at least two. Default (18, 36).

    Cost: one run of the learner for each ratio.

    Source: Rubin, Seroussi, Ringel (2024).

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(3, 6, 6, 1.0, hermite_target({1: 1.0}), activation="linear")
    >>> options = {"mode": 0, "threshold": 0.5, "ratios": (2.0, 20.0)}
    >>> measured_examples_needed(
    ...     network, jax.random.key(0), learner=regressed, **options
    ... ).ratio.shape
    (2,)
    """
    d = system.size("input_dim")
    system = system.with_(width=round(units_per_input * d))
    # One key: the smaller training sets are the first examples of the largest one.
    sizes = [round(ratio * d**power) for ratio in ratios]
    runs = [learner(system.with_(n_train=size), key) for size in sizes]
    return measured_threshold(runs, mode, threshold, sizes, d, power)


def measured_threshold(
    runs: Sequence[SolvedOnDrawnData | SampledPatches],
    mode: int,
    threshold: float,
    sizes: Sequence[int],
    dimension: float,
    power: float,
) -> MeasuredThreshold:
    """Number of examples at the threshold, from runs with the given numbers of examples. It follows
    from the power law of the share not learned through the two runs nearest to the threshold."""
    ratios = np.asarray(sizes) / dimension**power
    learned = np.asarray([float(run.learnability[mode]) for run in runs])
    above = int(np.clip(np.searchsorted(learned, threshold), 1, len(ratios) - 1))
    pair = slice(above - 1, above + 1)
    missing, logs = np.log(np.maximum(1 - learned[pair], 1e-3)), np.log(ratios[pair])
    slope = np.diff(missing)[0] / np.diff(logs)[0]
    found = np.exp(logs[0] + (np.log(1 - threshold) - missing[0]) / slope) if slope < 0 else np.inf
    near = ratios[0] / BEYOND <= found <= ratios[-1] * BEYOND
    return MeasuredThreshold(
        examples=jnp.asarray(found * dimension**power),
        per_dimension=jnp.asarray(found * dimension ** (power - 1)),
        residual=jnp.zeros(()),
        converged=jnp.asarray(near and all(bool(run.converged) for run in runs)),
        ratio=jnp.asarray(ratios),
        learnability=jnp.asarray(learned),
    )
