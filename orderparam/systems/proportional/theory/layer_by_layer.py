"""Deep networks with an order parameter in every layer: Newton's method on an action each evaluation of which costs O(P^3)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optimistix
from jaxtyping import Array, Float

from orderparam.kernels import common_scale
from orderparam.kernels.common_scale import BRANCHES, Minima
from orderparam.solve.minimum import minimise
from orderparam.systems.proportional.model import FullyConnected
from orderparam.systems.proportional.theory.evidence import data_term
from orderparam.systems.proportional.theory.fully_connected import (
    Branches,
    RenormalisedNetwork,
    bare_basis,
    hidden_and_readout,
    input_kernels,
    kernels,
    log_evidence,
    scaled,
)
from orderparam.systems.proportional.theory.losses import reached, regression
from orderparam.systems.proportional.theory.recursion import renormalised, with_means

# The scan for further minima of `branches`: this many equal log Q_l in the range where minima were ever met.
_SCAN = 61
_RANGE = (-9.0, 9.0)
_SAME = 1e-6  # minima closer than this in every log Q_l are one


def common_minima(system: FullyConnected) -> Minima:
    """All minima of the closure with a common scale, which costs one eigendecomposition: where the other closures start from."""
    basis = scaled(bare_basis(system), system.readout_variance)
    return common_scale.minima(basis.eigenvalues, basis.power, jnp.asarray(system.temperature, float), system.widths)


def noisy(system: FullyConnected, kernel: Float[Array, "train train"]) -> Float[Array, "train train"]:
    """T + K."""
    return kernel + jnp.asarray(system.temperature, float) * jnp.eye(kernel.shape[0])


def kernels_with_means(
    system: FullyConnected, scales: Float[Array, "layer"], kappas: Float[Array, "layer"], closure: str
) -> tuple[Float[Array, "train train"], Float[Array, "test train"], Float[Array, "test"]]:
    """As `fully_connected.kernels`, with the means of `nested` apart."""
    if closure != "nested":
        return kernels(system, scales, closure)
    variances = hidden_and_readout(system)
    train, test = (with_means(pairs, system.phi, variances, scales, kappas) for pairs in input_kernels(system))
    return train.cross, test.cross, test.first


def _action(system: FullyConnected, closure: str) -> tuple[Callable, Callable]:
    """F as a function of log Q_1 .. log Q_L, and its derivatives over the smallest width, N_l (Q_l - 1) + .."""
    widths, variances, start = system.widths, hidden_and_readout(system), input_kernels(system)[0]

    def value(logarithms: Float[Array, "layer"]) -> Float[Array, ""]:
        kernel = renormalised(start, system.phi, variances, jnp.exp(logarithms), closure).cross
        return jnp.sum(widths * (jnp.exp(logarithms) - logarithms)) + data_term(noisy(system, kernel), system.train[1])

    def gradient(logarithms: Float[Array, "layer"]) -> Float[Array, "layer"]:
        return jax.grad(value)(logarithms) / jnp.min(widths)

    return value, gradient


def finite_width_layers(system: FullyConnected, closure: str) -> RenormalisedNetwork:
    """The closures `nested` and `linear`; one output. Nested treats the mean of a non-odd activation apart."""
    if closure == "nested" and system.phi.parity != "odd":
        return _with_means(system)
    value, gradient = _action(system, closure)
    logarithms = minimise(value, gradient, jnp.log(common_minima(system).order_parameters[0]))
    residual = jnp.max(jnp.abs(jax.lax.stop_gradient(gradient(logarithms))))
    found = kernels(system, jnp.exp(logarithms), closure)
    return _result(system, found, jnp.exp(logarithms), jnp.exp(logarithms), value(logarithms), system.widths, residual)


def _with_means(system: FullyConnected) -> RenormalisedNetwork:
    """F(Q, kappa) = sum_l N_l [ -Q_l (1/kappa_l - 1) - log kappa_l ] + log det A + y^T A^{-1} y, stationary in both."""
    widths, variances = system.widths, hidden_and_readout(system)
    train, _ = input_kernels(system)
    depth = widths.shape[0]

    def value(unknowns: Float[Array, "unknown"]) -> Float[Array, ""]:
        scales, kappas = jnp.split(jnp.exp(unknowns), 2)
        kernel = with_means(train, system.phi, variances, scales, kappas).cross
        prior = jnp.sum(widths * (-scales * (1 / kappas - 1) - jnp.log(kappas)))
        return prior + data_term(noisy(system, kernel), system.train[1])

    def slopes(unknowns: Float[Array, "unknown"], _: None = None) -> Float[Array, "unknown"]:
        return jax.grad(value)(unknowns) / jnp.min(widths)

    start = jax.lax.stop_gradient(jnp.tile(jnp.log(common_minima(system).order_parameters[0]), 2))
    solution = optimistix.root_find(
        slopes, optimistix.Dogleg(rtol=1e-12, atol=1e-12), start, None, max_steps=60, throw=False
    ).value
    residual = jnp.max(jnp.abs(jax.lax.stop_gradient(slopes(solution))))
    scales, kappas = jnp.exp(solution[:depth]), jnp.exp(solution[depth:])
    found = kernels_with_means(system, scales, kappas, "nested")
    return _result(system, found, scales, kappas, value(solution), jnp.zeros(()), residual)  # F has no constants N_l here


def _result(
    system: FullyConnected,
    found: tuple[Float[Array, "train train"], Float[Array, "test train"], Float[Array, "test"]],
    scales: Float[Array, "layer"],
    kappas: Float[Array, "layer"],
    action: Float[Array, ""],
    constants: Float[Array, "*layer"],
    residual: Float[Array, ""],
) -> RenormalisedNetwork:
    y = system.train[1]
    test_targets, temperature = jnp.asarray(system.test_targets, float), jnp.asarray(system.temperature, float)
    return RenormalisedNetwork(
        **regression(*found, y, test_targets, temperature),
        order_parameters=scales,
        mean_scales=kappas,
        action=action,
        log_evidence=log_evidence(action, constants, y.shape[0]),
        residual=residual,
        converged=reached(residual),
    )


def branches(system: FullyConnected, closure: str) -> Branches:
    """The minima reached from those of the common scale and from every minimum of the action along equal log Q_l."""
    value, gradient = _action(system, closure)
    known = common_minima(system)
    line = jnp.linspace(*_RANGE, _SCAN)[:, None] * jnp.ones(system.widths.shape[0])
    values = jax.lax.map(value, line)
    (lowest,) = jnp.nonzero((values[1:-1] < values[:-2]) & (values[1:-1] < values[2:]), size=BRANCHES, fill_value=-1)
    starts = jnp.concatenate([jnp.log(known.order_parameters), line[lowest + 1]])
    usable = jnp.concatenate([known.found, lowest >= 0])
    starts = jnp.where(usable[:, None], starts, starts[0])

    found = jax.lax.map(lambda start: minimise(value, gradient, start), starts)
    actions = jax.lax.map(value, found)
    residuals = jnp.max(jnp.abs(jax.lax.map(gradient, found)), axis=1)
    order = jnp.argsort(actions)
    found, actions, residuals = found[order], actions[order], residuals[order]
    distances = jnp.max(jnp.abs(found[:, None] - found[None]), axis=-1)
    repeated = jnp.any(jnp.tril(distances < _SAME, -1), axis=1)
    places = jnp.nonzero(reached(residuals) & ~repeated, size=BRANCHES, fill_value=-1)[0]
    new = places >= 0
    return Branches(
        jnp.where(new[:, None], jnp.exp(found[places]), jnp.nan),
        jnp.where(new, actions[places], jnp.nan),
        jnp.where(new, residuals[places], jnp.nan),
        jnp.any(new),
    )
