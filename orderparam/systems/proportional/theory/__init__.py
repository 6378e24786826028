"""Theories of the room: System -> Result. Each can be swept, compiled and differentiated over the numbers of its system."""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from orderparam.core.system import is_number
from orderparam.systems.proportional.model import FullyConnected, Network, OnData, PatchNetwork
from orderparam.systems.proportional.theory import common_scale, hidden_kernel, integrated, several_outputs
from orderparam.systems.proportional.theory import fully_connected as dense
from orderparam.systems.proportional.theory.fully_connected import Branches, RenormalisedNetwork
from orderparam.systems.proportional.theory.hidden_kernel import Similarity
from orderparam.systems.proportional.theory.integrated import IntegratedNetwork
from orderparam.systems.proportional.theory.local import RenormalisedPatches, finite_width_patches, infinite_width_basis
from orderparam.systems.proportional.theory.losses import Prediction, PredictionOfSeveral, reached
from orderparam.systems.proportional.theory.recursion import Closure, check_closure
from orderparam.systems.proportional.theory.several_outputs import RenormalisedOutputs

__all__ = [
    "Branches", "IntegratedNetwork", "Prediction", "PredictionOfSeveral", "RenormalisedNetwork", "RenormalisedOutputs",
    "RenormalisedPatches", "Similarity", "branches", "finite_width", "infinite_width", "integrated_width", "similarity",
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
) -> RenormalisedNetwork | RenormalisedOutputs | RenormalisedPatches:
    """The network at its finite width: order parameters from the minimum of the effective action, and what follows from them.

    closure: how the order parameters of a deep fully connected network enter its kernel (`theory.recursion`); the same at depth
    one and for relu and linear units. With several outputs and more than one layer only "common" exists.

    Exact in the limit of large P and N at P/N of order one for linear units; for others the hidden units are taken as Gaussian
    after projection on the data, which is good for P/N up to about 1 and T not small (docs/proportional.md has measured
    errors). In deep networks the mean of a non-odd activation is not treated apart.
    """
    check_closure(closure)
    _check(system, OnData)
    if isinstance(system, PatchNetwork):
        return _finite_patches(_numbers(system))
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


def branches(system: FullyConnected) -> Branches:
    """All minima of the effective action of a fully connected network with one output in the closure `common`.

    With two of them, training at fixed temperature depends on where it starts, and the true posterior follows the lowest.
    """
    _check(system, FullyConnected)
    if system.targets.ndim != 1:
        raise ValueError(f"FullyConnected.targets has shape {system.targets.shape}: must be (examples,), one output")
    return _branches(_numbers(system))


def similarity(system: FullyConnected) -> Similarity:
    """Similarity matrices of the training set in the hidden layer, before and after learning; depth one, one output."""
    _check(system, FullyConnected)
    if system.targets.ndim != 1 or system.depth != 1:
        raise ValueError(f"depth = {system.depth}, targets of shape {system.targets.shape}: must be one hidden layer, one output")
    return _similarity(_numbers(system))


@_compiled
def _finite_patches(system: PatchNetwork) -> RenormalisedPatches:
    return finite_width_patches(system)


@_compiled
def _finite_vector(system: FullyConnected, closure: str) -> RenormalisedNetwork:
    return dense.finite_width_vector(system, closure)


@_compiled
def _finite_outputs(system: FullyConnected) -> RenormalisedOutputs:
    basis = dense.scaled(dense.bare_basis(system), system.readout_variance)
    temperature, widths = jnp.asarray(system.temperature, float), system.widths
    minimum = several_outputs.solve(basis, temperature, widths)
    fields, covariance = several_outputs.predict(basis, minimum.scale, temperature, system.test_targets)
    action = jnp.min(widths) * minimum.action
    examples, outputs = basis.targets.shape
    return RenormalisedOutputs(
        **fields,
        order_parameters=minimum.scale,
        covariance=covariance,
        action=action,
        log_evidence=dense.log_evidence(action, widths * outputs, examples * outputs),
        residual=minimum.residual,
        converged=reached(minimum.residual),
    )


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
def _branches(system: FullyConnected) -> Branches:
    basis = dense.scaled(dense.bare_basis(system), system.readout_variance)
    found = common_scale.minima(basis.eigenvalues, basis.power, jnp.asarray(system.temperature, float), system.widths)
    known = found.found
    return Branches(
        jnp.where(known[:, None], found.order_parameters, jnp.nan),
        jnp.where(known, found.action, jnp.nan),
        jnp.where(known, found.residual, jnp.nan),
        jnp.any(known) & jnp.all(reached(found.residual) | ~known),
    )


@_compiled
def _similarity(system: FullyConnected) -> Similarity:
    temperature, width = jnp.asarray(system.temperature, float), system.widths[0]
    scale = dense.finite_width_vector(system, "nested").order_parameters[0]
    kernel = dense.kernels(system, jnp.ones(1), "nested")[0]
    _, y = system.train
    after = hidden_kernel.posterior_mean(kernel, y, scale, temperature, width)
    return Similarity(kernel, after, scale * kernel, hidden_kernel.alignment(kernel, y), hidden_kernel.alignment(after, y))
