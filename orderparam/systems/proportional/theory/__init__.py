"""Theories of the room: System -> Result. Each can be swept, compiled and differentiated over the numbers of its system."""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from orderparam.core.system import is_number
from orderparam.systems.proportional.model import FullyConnected, Network, OnData, PatchNetwork
from orderparam.systems.proportional.theory import fully_connected as dense
from orderparam.systems.proportional.theory import hidden_kernel, integrated, layer_by_layer, several_outputs
from orderparam.systems.proportional.theory.fully_connected import Branches, RenormalisedNetwork
from orderparam.systems.proportional.theory.hidden_kernel import Similarity
from orderparam.systems.proportional.theory.integrated import IntegratedNetwork
from orderparam.systems.proportional.theory.local import (
    RenormalisedKernel,
    RenormalisedPatches,
    finite_width_patches,
    infinite_width_basis,
    local_kernel,
)
from orderparam.systems.proportional.theory.local_outputs import RenormalisedPatchOutputs, finite_width_patch_outputs
from orderparam.systems.proportional.theory.losses import Prediction, PredictionOfSeveral, reached, regression
from orderparam.systems.proportional.theory.recursion import Closure, check_closure
from orderparam.systems.proportional.theory.several_outputs import RenormalisedOutputs

__all__ = [
    "Branches",
    "IntegratedNetwork",
    "Prediction",
    "PredictionOfSeveral",
    "RenormalisedKernel",
    "RenormalisedNetwork",
    "RenormalisedOutputs",
    "RenormalisedPatchOutputs",
    "RenormalisedPatches",
    "Similarity",
    "branches",
    "finite_width",
    "infinite_width",
    "integrated_width",
    "kernel_corrected",
    "renormalised_kernel",
    "similarity",
]  # fmt: skip

AnySystem = TypeVar("AnySystem", bound=OnData)


def _compiled(function: Callable) -> Callable:
    """The function compiled once for given shapes, whatever the numbers of the system."""
    return eqx.filter_jit(function)


def _numbers(system: AnySystem) -> AnySystem:
    """Every number as an array, so that another value does not compile again."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, float) if is_number(leaf) or hasattr(leaf, "shape") else leaf, system)


def _check(system: Any, kind: type) -> None:
    if not isinstance(system, kind):
        raise ValueError(f"system is a {type(system).__name__}: must be a {kind.__name__}")


def finite_width(
    system: Network, closure: Closure = "nested"
) -> RenormalisedNetwork | RenormalisedOutputs | RenormalisedPatches | RenormalisedPatchOutputs:
    """The network at its finite width: order parameters from the minimum of the effective action, and what follows from them.

    closure: how the order parameters of a deep fully connected network enter its kernel (`theory.recursion`); the same at depth
    one and for relu and linear units. With several outputs and more than one layer only "common" exists.

    Exact in the limit of large P and N at P/N of order one for linear units; for others the hidden units are taken as Gaussian
    after projection on the data, which is good for P/N up to about 1 and T not small (docs/proportional.md has measured
    errors). The mean of a non-odd activation has order parameters of its own, except in the closures `common` and `linear` of
    deep networks, where it is part of the kernel.
    """
    check_closure(closure)
    _check(system, OnData)
    if isinstance(system, PatchNetwork):
        return _finite_patches(_numbers(system)) if system.targets.ndim == 1 else _finite_patch_outputs(_numbers(system))
    if system.targets.ndim == 2:
        if system.depth > 1 and closure != "common":
            raise ValueError(f"closure = {closure!r}: with several outputs and depth {system.depth} it must be 'common'")
        return _finite_outputs(_numbers(system))
    return _finite_vector(_numbers(system), closure)


def infinite_width(system: Network) -> Prediction | PredictionOfSeveral:
    """The same network with infinitely many units: Gaussian-process regression with the kernel of the prior (Neal 1996; Lee et
    al. 2018). The width in the system has no effect."""
    _check(system, OnData)
    return _infinite(_numbers(system))


def integrated_width(system: FullyConnected) -> IntegratedNetwork:
    """A fully connected network with one output, averaged over the scale of its kernel: exact for linear units at any width.

    For other units the closure `common` with fluctuations. Raises `ValueError` for several outputs.
    """
    _check(system, FullyConnected)
    if system.targets.ndim != 1:
        raise ValueError(f"FullyConnected.targets has shape {system.targets.shape}: must be (examples,), one output")
    return _integrated(_numbers(system))


def branches(system: FullyConnected, closure: Closure = "common") -> Branches:
    """The minima of the effective action of a fully connected network with one output; the mean of a non-odd activation is not
    treated apart.

    With two of them, training at fixed temperature depends on where it starts, and the true posterior follows the lowest. In the
    closure `common`, and at depth one, all are found, by a scan of the one unknown; in the others those that Newton's method
    reaches from them and from a scan along equal log Q_l.
    """
    check_closure(closure)
    _check(system, FullyConnected)
    if system.targets.ndim != 1:
        raise ValueError(f"FullyConnected.targets has shape {system.targets.shape}: must be (examples,), one output")
    return _branches(_numbers(system), "common" if system.depth == 1 else closure)


def kernel_corrected(system: FullyConnected) -> Prediction:
    """The predictor whose kernel is Q times the hidden kernel corrected to first order in 1/N (`similarity`), at test points too.

    In use in the literature's code; not a systematic correction: for a linear network (digits, P = 50, N = 20, T = 0.1) it
    turns a test bias of 0.5388, exact 0.5383, into 0.612. One hidden layer, one output. Raises `ValueError` otherwise.
    """
    _check_shallow(system)
    return _corrected(_numbers(system))


def _check_shallow(system: FullyConnected) -> None:
    _check(system, FullyConnected)
    if system.targets.ndim != 1 or system.depth != 1:
        raise ValueError(f"depth = {system.depth}, targets of shape {system.targets.shape}: must be one hidden layer, one output")


def similarity(system: Network) -> Similarity:
    """Similarity matrices of the training set in the hidden layer, before and after learning, to first order in 1/N.

    One hidden layer, fully connected or local, and one output. Raises `ValueError` otherwise.
    """
    _check(system, OnData)
    if isinstance(system, FullyConnected):
        _check_shallow(system)
    elif system.targets.ndim != 1:
        raise ValueError(f"{type(system).__name__}.targets has shape {system.targets.shape}: must be (examples,), one output")
    found: Any = finite_width(system)
    scales = found.order_parameters, found.mean_scales
    if isinstance(system, FullyConnected):
        scales = tuple(scale[None] for scale in scales)
    elif system.pooled:
        scales = tuple(system.patch_count * scale[:1, :1] for scale in scales)
    return _similarity(_numbers(system), *scales)


def renormalised_kernel(system: Network, closure: Closure = "nested") -> RenormalisedKernel:
    """The kernel with which the network of finite width predicts: `finite_width` is Gaussian-process regression with it.

    Raises `ValueError` for several outputs, where it is Q (x) K for fully connected networks.
    """
    check_closure(closure)
    _check(system, OnData)
    if system.targets.ndim != 1:
        raise ValueError(f"{type(system).__name__}.targets has shape {system.targets.shape}: must be (examples,), one output")
    found: Any = finite_width(system, closure)
    return _kernel(_numbers(system), found.order_parameters, found.mean_scales, closure)


@_compiled
def _finite_patches(system: PatchNetwork) -> RenormalisedPatches:
    return finite_width_patches(system)


@_compiled
def _finite_patch_outputs(system: PatchNetwork) -> RenormalisedPatchOutputs:
    return finite_width_patch_outputs(system)


@_compiled
def _finite_vector(system: FullyConnected, closure: str) -> RenormalisedNetwork:
    if closure == "common" or system.depth == 1:
        return dense.finite_width_scalar(system)
    return layer_by_layer.finite_width_layers(system, closure)


@_compiled
def _finite_outputs(system: FullyConnected) -> RenormalisedOutputs:
    apart = system.depth == 1 and system.phi.parity != "odd"
    kernel = dense.centred_kernel(system) if apart else dense.scaled(dense.bare_basis(system), system.readout_variance)
    return several_outputs.renormalised(kernel, jnp.asarray(system.temperature, float), system.widths, system.test_targets)


@_compiled
def _infinite(system: Network) -> Prediction | PredictionOfSeveral:
    bare = infinite_width_basis(system) if isinstance(system, PatchNetwork) else dense.bare_basis(system)
    basis = dense.scaled(bare, system.readout_variance)
    kind = Prediction if system.targets.ndim == 1 else PredictionOfSeveral
    return kind(**dense.predict(basis, jnp.asarray(system.temperature, float), system.test_targets))


@_compiled
def _integrated(system: FullyConnected) -> IntegratedNetwork:
    basis = dense.scaled(dense.bare_basis(system), system.readout_variance)
    return integrated.integrate(basis, jnp.asarray(system.temperature, float), system.widths, system.test_targets)


@_compiled
def _branches(system: FullyConnected, closure: str) -> Branches:
    if closure != "common":
        return layer_by_layer.branches(system, closure)
    found = layer_by_layer.common_minima(system)
    known = found.found
    return Branches(
        jnp.where(known[:, None], found.order_parameters, jnp.nan),
        jnp.where(known, found.action, jnp.nan),
        jnp.where(known, found.residual, jnp.nan),
        jnp.any(known) & jnp.all(reached(found.residual) | ~known),
    )


@_compiled
def _similarity(system: Network, scale: jax.Array, kappa: jax.Array) -> Similarity:
    return hidden_kernel.similarity(system, scale, kappa)


@_compiled
def _corrected(system: FullyConnected) -> Prediction:
    scale = dense.finite_width_scalar(system).order_parameters[0]
    temperature, (_, y) = jnp.asarray(system.temperature, float), system.train
    train, rows, diagonal = dense.kernels(system, jnp.ones(1), "nested")
    weight = hidden_kernel.pull(scale * train, y, temperature)

    def change(left: jax.Array, right: jax.Array) -> jax.Array:
        return hidden_kernel.correction(left[None], weight, right[None], scale[None, None] / system.widths[0])

    after = train + change(train, train), rows + change(rows, train), diagonal + jnp.diag(change(rows, rows))
    found = scale * after[0], scale * after[1], scale * after[2]
    return Prediction(**regression(*found, y, jnp.asarray(system.test_targets, float), temperature))


@_compiled
def _kernel(system: Network, scales: jax.Array, kappas: jax.Array, closure: str) -> RenormalisedKernel:
    if isinstance(system, PatchNetwork):
        return local_kernel(system, scales, kappas)
    closure = "nested" if system.depth == 1 else closure  # at depth one there is one closure
    return RenormalisedKernel(*layer_by_layer.kernels_with_means(system, scales, kappas, closure))
