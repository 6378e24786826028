"""Number of examples that convolutional networks on patches need, as patches, channels and the
dimension of a patch grow together.

With N = `patches_per_dim` S patches and C = `channels_per_dim` S channels the input has d = N S
dimensions. A network of linear units then needs P ~ d^(3/4) examples, and regression with its fixed
kernel needs P ~ d (Seroussi, Naveh, Ringel 2023).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment, theory
from orderparam.solve.root import decreasing_root
from orderparam.systems.kernel_adaptation.network import on_modes
from orderparam.systems.kernel_adaptation.on_data.experiment import SolvedOnDrawnData
from orderparam.systems.kernel_adaptation.patches.experiment import (
    SampledPatches,
    sampled_patches,
)
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
from orderparam.systems.kernel_adaptation.two_layers.examples_needed import (
    ExamplesNeeded,
    MeasuredThreshold,
    measured_threshold,
    ridge_dual,
)
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import ModePrediction
from orderparam.systems.kernel_adaptation.two_layers.theory import adapted_weights

PatchLearner = Callable[[PatchNetwork, PRNGKeyArray], SolvedOnDrawnData | SampledPatches]


class PatchExamplesNeeded(ExamplesNeeded):
    """Number of examples at which the linear part of a target on patches is learned to a threshold.

    Fields:
        dimension: the number d = N S of inputs.
    """

    dimension: Float[Array, ""]


@theory
def patch_examples_needed(
    system: PatchNetwork,
    *,
    theory: Callable[[PatchNetwork], ModePrediction] = adapted_weights,
    threshold: float = 0.5,
    patches_per_dim: float = 0.2,
    channels_per_dim: float = 20.0,
) -> PatchExamplesNeeded:
    r"""Number of examples at which a theory averaged over data learns the first mode to a
    threshold.

    $$ f_1(P) / y_1 = \mathrm{threshold}, \qquad N = \mathrm{patches\_per\_dim}\; S, \qquad
       C = \mathrm{channels\_per\_dim}\; S $$

    is solved for P between $d^{1/2}/20$ and 100 d, where the learnability must be positive. The
    `patches` and `channels` of the system are not used.

    Args:
        theory: the theory averaged over data. Default `adapted_weights`.
        threshold: the learnability to reach. Default 0.5.
        patches_per_dim: number of patches over the dimension S of a patch. Default 0.2.
        channels_per_dim: number of channels over S. Default 20.

    Accuracy: 1e-8 in log learnability.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> from orderparam.systems.kernel_adaptation import gaussian_process, hermite_target
    >>> network = PatchNetwork(50, 1, 1, 1, 1.0, hermite_target({1: 1.0}), activation="linear")
    >>> found = patch_examples_needed(network, theory=gaussian_process)
    >>> round(float(found.per_dimension), 6), float(found.dimension)
    (1.0, 500.0)
    """
    grown = _grown(system, patches_per_dim, channels_per_dim)
    d = grown.patch_dim * grown.patches

    def missing(log_n: Array, system: PatchNetwork) -> Array:
        return jnp.log(threshold / theory(system.with_(n_train=jnp.exp(log_n))).learnability[0])

    root = decreasing_root(missing, jnp.log(d) / 2 - 3, jnp.log(100 * d), grown)
    return PatchExamplesNeeded(
        examples=jnp.exp(root.value),
        per_dimension=jnp.exp(root.value) / d,
        residual=root.residual,
        converged=root.converged,
        dimension=jnp.asarray(d, float),
    )


def _grown(system: PatchNetwork, patches_per_dim: float, channels_per_dim: float) -> PatchNetwork:
    side = system.patch_dim
    return system.with_(patches=patches_per_dim * side, channels=channels_per_dim * side)


def regressed_patches(system: PatchNetwork, key: PRNGKeyArray) -> SolvedOnDrawnData:
    """Output of regression with the kernel of infinitely many linear channels, on the training set
    that `sampled_patches` draws. This is ridge regression on all inputs; its overlaps are exact."""
    shape = system.size("n_train"), system.size("patches"), system.size("patch_dim")
    data_key, _, _ = jax.random.split(key, 3)
    x = jax.random.normal(data_key, shape)
    layer = system.hidden
    y = jnp.sum(layer.target(x[:, :, 0]), axis=1) / jnp.sqrt(shape[1])
    flat = x.reshape(shape[0], -1)
    variance = layer.readout_variance * layer.scale**2
    dual, residual = ridge_dual(variance * flat @ flat.T, layer.temperature, y)
    weights = (variance * flat.T @ dual).reshape(shape[1:])
    output = jnp.sum(weights[:, 0], keepdims=True) / jnp.sqrt(shape[1])
    return SolvedOnDrawnData(
        **on_modes(layer, output, jnp.ones(())), residual=residual, converged=residual < 1e-8
    )


class MeasuredPatchThreshold(MeasuredThreshold):
    """Number of examples at which a measured learnability on patches reaches a threshold.

    Fields:
        dimension: the number d = N S of inputs.
    """

    dimension: Float[Array, ""]


@experiment
def measured_patch_examples(
    system: PatchNetwork,
    key: PRNGKeyArray,
    *,
    learner: PatchLearner = sampled_patches,
    threshold: float = 0.5,
    patches_per_dim: float = 0.2,
    channels_per_dim: float = 20.0,
    power: float = 0.75,
    ratios: tuple[float, ...] = (1.4, 3.0),
) -> MeasuredPatchThreshold:
    """Number of examples at which a convolutional network, or regression with its kernel, learns
    the first mode to a threshold.

    For each of the ratios the learner sees the first P = ratio * d^power examples of one random
    training set. Between these numbers the share that is not learned is interpolated by a power law
    of P. Numbers of patches and channels are as in `patch_examples_needed`.

    Args:
        learner: `sampled_patches` (default), or `sampled_linear_patches` or `regressed_patches` for
            linear channels.
        threshold: the learnability to reach. Default 0.5.
        patches_per_dim: number of patches over the dimension S of a patch. Default 0.2.
        channels_per_dim: number of channels over S. Default 20.
        power: power of d to which the numbers of examples are proportional. Default 3/4.
        ratios: increasing values of P/d^power, at least two. Default (1.4, 3).

    Cost: one run of the learner for each ratio.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = PatchNetwork(5, 1, 1, 1, 1.0, hermite_target({1: 1.0}), activation="linear")
    >>> options = {"learner": regressed_patches, "ratios": (2.0, 8.0)}
    >>> measured_patch_examples(network, jax.random.key(0), **options).ratio.shape
    (2,)
    """
    grown = _grown(system, patches_per_dim, channels_per_dim)
    whole = {name: round(float(getattr(grown, name))) for name in ("patches", "channels")}
    grown = grown.with_(**whole)
    d = grown.size("patch_dim") * whole["patches"]
    sizes = [round(ratio * d**power) for ratio in ratios]
    runs = [learner(grown.with_(n_train=size), key) for size in sizes]
    found = measured_threshold(runs, 0, threshold, sizes, d, power)
    fields = {name: getattr(found, name) for name in MeasuredThreshold.dims()}
    return MeasuredPatchThreshold(**fields, dimension=jnp.asarray(d, float))
