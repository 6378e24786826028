"""The network at its finite width, and in the limit of infinite width: kernels, order parameters, predictions."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.systems.proportional.model import BayesianNetwork, BayesianPatchNetwork, FullyConnected
from orderparam.systems.proportional.theory import deep
from orderparam.systems.proportional.theory.action import stationary
from orderparam.systems.proportional.theory.deep import Closure, Kernels, check_one_output
from orderparam.systems.proportional.theory.kernels import OnePlace, Places
from orderparam.systems.proportional.theory.majorise import Layers
from orderparam.systems.proportional.theory.patch_kernels import patch_means, weighted_kernels
from orderparam.systems.proportional.theory.results import (
    Prediction,
    RenormalisedKernel,
    RenormalisedNetwork,
    log_evidence,
    reached,
)


def prior_kernels(system: BayesianNetwork) -> Kernels:
    """The kernel of infinite width: on the training set, of the test points against it, and of every test point with itself."""
    if isinstance(system, FullyConnected):
        return deep.prior_kernels(system)
    assert isinstance(system, BayesianPatchNetwork)
    count, same = system.patch_count, not system.pooled
    scale = jnp.eye(count) if same else jnp.ones((count, count)) / count
    train, _ = weighted_kernels(system, system.train[0], scale, same)
    return train, *weighted_kernels(system, system.test_inputs, scale, same)


def prior_means(system: BayesianNetwork) -> tuple[Float[Array, "train"], Float[Array, "test"]]:
    """The mean of the features of one place, of training set and test points, with the root of the read-out variance."""
    root = jnp.sqrt(system.readout_variance)
    if isinstance(system, FullyConnected):
        first, second = (system.activation.mean(pairs.first) for pairs in deep.input_pairs(system))
    else:
        assert isinstance(system, BayesianPatchNetwork)
        first, second = (jnp.mean(patch_means(system, x), axis=0) for x in (system.train[0], system.test_inputs))
    return root * first, root * second


def one_place(system: BayesianNetwork, apart: bool) -> OnePlace:
    """The kernel as of features at one place; `apart`: with the mean of the activation apart."""
    kernels, y = prior_kernels(system), system.train[1]
    means = prior_means(system) if apart else (jnp.zeros(y.shape[0]), jnp.zeros(kernels[1].shape[0]))
    return OnePlace.of(*kernels, *means, y)


def mean_apart(system: BayesianNetwork) -> bool:
    """Whether the mean of the activation has its own order parameters: of a non-odd one, in one hidden layer."""
    return system.depth == 1 and system.activation.parity != "odd"


def _check_closure(system: BayesianNetwork, closure: Closure = "nested") -> None:
    if system.depth > 1 and system.outputs > 1 and closure != "common":
        raise ValueError(f"closure = {closure!r}: with several outputs and depth {system.depth} it must be 'common'")


@theory(check=_check_closure)
def finite_width(system: BayesianNetwork, *, closure: Closure = "nested") -> RenormalisedNetwork:
    """The network at its finite width: order parameters from the stationary point of the effective action, and what follows.

    closure: how the order parameters of a deep fully connected network enter its kernel (`theory.deep`); the same at depth
    one and for relu and linear units. With several outputs and more than one layer only "common" exists.

    Exact in the limit of large P and N at P/N of order one for linear units; for others the hidden units are taken as Gaussian
    after projection on the data, which is good for P/N up to about 1 and T not small (docs/theory/proportional.md has measured
    errors). The mean of a non-odd activation has order parameters of its own, except in the closures `common` and `linear` of
    deep networks, where it is part of the kernel.
    """
    if isinstance(system, FullyConnected) and system.depth > 1 and closure != "common":
        return deep.finite_width_layers(system, closure)
    apart, outputs, temperature = mean_apart(system), system.outputs, jnp.asarray(system.temperature)
    kernel = (
        Places.of(system, apart) if isinstance(system, BayesianPatchNetwork) and system.places > 1 else one_place(system, apart)
    )
    found = stationary(kernel, temperature, system.widths, apart)
    fields = kernel.predict(found.scale, found.kappa, temperature, system.test[1])

    def by_layer(scale: Float[Array, "index other"]) -> Float[Array, "layer place output other_place other_output"]:
        return Layers(system.widths).split(scale).reshape(-1, *(system.places, outputs) * 2)

    return RenormalisedNetwork(
        **fields | {"converged": fields["converged"] & reached(found.residual) & jnp.isfinite(found.action)},
        order_parameters=by_layer(found.scale),
        mean_scales=by_layer(found.kappa),
        action=found.action,
        log_evidence=log_evidence(found.action, found.constant, system.train[1].size),
        residual=found.residual,
        steps=found.steps,
    )


@theory
def infinite_width(system: BayesianNetwork) -> Prediction:
    """The same network with infinitely many units: Gaussian-process regression with the kernel of the prior (Neal 1996; Lee et
    al. 2018). The width in the system has no effect."""
    one = jnp.eye(system.outputs)
    return Prediction(**one_place(system, False).predict(one, one, jnp.asarray(system.temperature), system.test[1]))


@theory(check=check_one_output)
def renormalised_kernel(system: BayesianNetwork, *, closure: Closure = "nested") -> RenormalisedKernel:
    """The kernel with which the network of finite width predicts: `finite_width` is Gaussian-process regression with it.

    Raises `ValueError` for several outputs, where it is Q (x) K for fully connected networks.
    """
    found = finite_width(system, closure=closure)
    return RenormalisedKernel(*kernel_at(system, found.order_parameters, found.mean_scales, closure), found.converged)


def kernel_at(system: BayesianNetwork, scales: Array, kappas: Array, closure: str = "nested") -> Kernels:
    """The renormalised kernel of one output at given order parameters (layer, place, 1, place, 1)."""
    if isinstance(system, BayesianPatchNetwork) and system.places > 1:
        apart = mean_apart(system)
        places, shape = Places.of(system, apart), (system.places, system.places)
        matrices = scales.reshape(shape), kappas.reshape(shape)
        rows, own = places.rows(*matrices)
        return places.matrix(*matrices), rows[:, 0], own[:, 0, 0]
    scales, kappas = scales.reshape(-1), kappas.reshape(-1)
    if isinstance(system, FullyConnected) and system.depth > 1:
        return deep.kernels(system, scales, kappas, closure)
    train, rows, diagonal = (scales[0] * part for part in prior_kernels(system))
    if mean_apart(system):
        (mean, test_mean), excess = prior_means(system), kappas[0] - scales[0]
        train, rows = train + excess * jnp.outer(mean, mean), rows + excess * jnp.outer(test_mean, mean)
        diagonal = diagonal + excess * test_mean**2
    return train, rows, diagonal
