"""Theory of trained networks: the value of every observable at infinite width, and the alignment
that chance alone gives."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.covariance import input_covariance
from orderparam.networks.composition import Serial
from orderparam.observables.hsic import of_kernels
from orderparam.solve.root import decreasing_root
from orderparam.systems.trained_networks.model import InspectedTraining, hidden

Matrix = Float[Array, "example example"]
_LONG = 60.0  # logarithm of the longest training time, in units of that of the fastest mode


class WideOrderParameters(Result):
    """Observables of an infinitely wide network at the start and at each level of training.

    Fields:
        test_error: mean squared error on the test inputs.
        train_error: mean squared error on the training set, which is that of the level.
        lazy_to_rich: relative distance from the linearised network: 0.
        kernel_drift: relative change of the tangent kernel: 0.
        shape_drift: 1 minus the similarity of the tangent kernel to the tangent kernel at the
            start: 0.
        alignment: alignment of the kernel of each hidden layer with the targets, without the bias
            of few examples.
        wide_alignment: the same value as `alignment`; networks estimate it without the bias of few
            neurons.
        similarity: similarity of each hidden layer to itself at the start: 1.
        outliers: number of outliers of the weights into each hidden layer: 0.
        converged: whether the training time of every level was found.
    """

    test_error: Float[Array, "level"]
    train_error: Float[Array, "level"]
    lazy_to_rich: Float[Array, "level"]
    kernel_drift: Float[Array, "level"]
    shape_drift: Float[Array, "level"]
    alignment: Float[Array, "level layer"]
    wide_alignment: Float[Array, "level layer"]
    similarity: Float[Array, "level layer"]
    outliers: Float[Array, "layer"]
    converged: Float[Array, ""]


class ChanceAlignment(Result):
    """Alignment that chance gives.

    Fields:
        wide_alignment: alignment of each hidden layer that one in a hundred permutations of the
            targets exceeds.
    """

    wide_alignment: Float[Array, "layer"]


@theory
def infinite_width(system: InspectedTraining) -> WideOrderParameters:
    r"""All observables of the infinitely wide network in ntk scaling, which is lazy.

    Hidden layers keep the kernel $K_l$ of the start. Their alignment with the targets is, with h as
    in `orderparam.observables.similarity`,

    $$ A_l = \frac{h(K_l, y y^T)}{\sqrt{h(K_l, K_l)\, h(y y^T, y y^T)}} $$

    The outputs follow the tangent kernel, $f = \Theta_{*S} \Theta_{SS}^{-1} (1 - e^{-t
    \Theta_{SS}}) y$, with the time t at which the training error is that of the level.

    Accuracy: 1e-8 in the kernels. The theory describes gradient flow, while networks take steps of
    finite size.

    Source: Lee et al. 2018 (kernels); Jacot et al. 2018, Lee et al. 2019 (training); the estimator
        h: Song et al. 2012.

    >>> import numpy as np
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> x = np.random.default_rng(0).normal(size=(12, 4))
    >>> network = fully_connected(1, None, "erf")
    >>> system = InspectedTraining(x[:8], x[:8, 0], x[8:], x[8:, 0], network)
    >>> infinite_width(system).alignment.shape
    (3, 1)
    """
    aligned = jnp.stack([_alignment(kernel, system.targets) for kernel in _kernels(system)])
    levels = jnp.asarray((1.0, *system.below()))
    outputs, converged = _flow(system)
    count, layers = len(levels), len(aligned)
    error = jnp.mean((outputs - system.test_targets) ** 2, axis=1)
    nothing, one = jnp.zeros(count), jnp.ones((count, layers))
    return WideOrderParameters(
        test_error=error,
        train_error=levels * jnp.mean(system.targets**2),
        lazy_to_rich=nothing,
        kernel_drift=nothing,
        shape_drift=nothing,
        alignment=one * aligned,
        wide_alignment=one * aligned,
        similarity=one,
        outliers=0 * aligned,
        converged=converged,
    )


@theory(differentiable=False)
def permuted_targets(
    system: InspectedTraining, *, draws: int = 2000, seed: int = 0
) -> ChanceAlignment:
    r"""The alignment of infinitely wide layers that one in a hundred permutations of the targets
    exceeds.

    Args:
        draws: number of permutations.
        seed: seed of the random permutations.

    Accuracy: that of a quantile of `draws` permutations, which is 3 % for 2000 permutations.

    Source: the permutation test of Fisher 1935; the mean over permutations is 0.

    >>> import numpy as np
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> x = np.random.default_rng(0).normal(size=(30, 4))
    >>> network = fully_connected(1, None, "erf")
    >>> system = InspectedTraining(x[:20], x[:20, 0], x[20:], x[20:, 0], network)
    >>> bool(permuted_targets(system).wide_alignment[0] < infinite_width(system).alignment[0, 0])
    True
    """
    keys = jax.random.split(jax.random.key(seed), draws)
    permuted = jax.vmap(lambda key: jax.random.permutation(key, system.targets))(keys)
    found = [
        jnp.quantile(jax.lax.map(lambda y, k=kernel: _alignment(k, y), permuted), 0.99)
        for kernel in _kernels(system)
    ]
    return ChanceAlignment(wide_alignment=jnp.stack(found))


def _kernels(system: InspectedTraining) -> list[Matrix]:
    """The kernel of each hidden layer on the training inputs, summed over positions."""
    found = []
    for layers in hidden(system.architecture):
        network = Serial(layers)
        covariance = input_covariance(system.inputs, None, network.needs_pixel_pairs(False), "ntk")
        kernel = network.covariance(covariance, False).cross.nngp
        found.append(kernel.reshape(*kernel.shape[:2], -1).sum(axis=2))
    return found


def _alignment(kernel: Matrix, targets: Float[Array, "example"]) -> Float[Array, ""]:
    label = jnp.outer(targets, targets)
    power = of_kernels(kernel, kernel) * of_kernels(label, label)
    return of_kernels(kernel, label) / jnp.sqrt(power)


def _flow(system: InspectedTraining) -> tuple[Float[Array, "level test"], Float[Array, ""]]:
    """Outputs of gradient flow with the tangent kernel, at the start and at each level."""
    start = jnp.zeros((1, len(system.test_inputs)))
    if not system.below():
        return start, jnp.ones(())
    architecture = system.architecture
    kernel = architecture.kernel(system.inputs).ntk
    across = architecture.kernel(system.test_inputs, system.inputs).ntk
    values, vectors = jnp.linalg.eigh(kernel)
    values = jnp.maximum(values, 1e-14 * values[-1])
    residual = vectors.T @ system.targets
    share = residual**2 / jnp.sum(residual**2)

    def excess(log_time: Array, level: Array) -> Array:
        return jnp.sum(share * jnp.exp(-2 * jnp.exp(log_time) * values / values[-1])) - level

    @eqx.filter_vmap
    def at(level: Array) -> tuple[Array, Array]:
        solved = decreasing_root(excess, jnp.asarray(-_LONG), jnp.asarray(_LONG), level)
        grown = -jnp.expm1(-jnp.exp(solved.value) * values / values[-1]) / values
        return across @ (vectors @ (grown * residual)), solved.converged

    outputs, converged = at(jnp.asarray(system.below()))
    return jnp.concatenate([start, outputs]), jnp.all(converged).astype(float)
