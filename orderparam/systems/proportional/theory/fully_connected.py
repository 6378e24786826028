"""Fully connected networks of any depth at finite width, and in the limit of infinite width."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.kernels import common_scale
from orderparam.kernels.common_scale import Eigenbasis
from orderparam.systems.proportional.model import FullyConnected
from orderparam.systems.proportional.theory import mean_direction
from orderparam.systems.proportional.theory.losses import Prediction, losses, reached
from orderparam.systems.proportional.theory.mean_direction import Centred
from orderparam.systems.proportional.theory.recursion import Pairs, input_pairs, renormalised


class RenormalisedNetwork(Prediction):
    """A network of finite width: Gaussian-process regression with a kernel that the training set has renormalised.

    order_parameters: Q_1 .. Q_L, all 1 at infinite width. At depth one, Q is the posterior average of |v|^2 / (N r), v the
    read-out weights and r their prior variance.
    mean_scales: factors kappa_1 .. kappa_L of the kernels along the mean of a non-odd activation; Q_l where it is not apart.
    action: F at the order parameters, p(Q) ~ exp(-F/2). log_evidence: log p(y), -(F - sum_l N_l + P log 2 pi)/2.
    residual: largest derivative of F with respect to log Q_l, divided by the smallest width. converged: residual < 1e-9.
    """

    order_parameters: Float[Array, "layer"]
    mean_scales: Float[Array, "layer"]
    action: Float[Array, ""]
    log_evidence: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class Branches(Result):
    """The minima of the effective action, by increasing action; NaN where there are fewer than three.

    At depth one no more than one was found on real data. Deep networks have two at high temperature and strong signals.
    """

    order_parameters: Float[Array, "branch layer"]
    action: Float[Array, "branch"]
    residual: Float[Array, "branch"]
    converged: Bool[Array, ""]


def hidden_and_readout(system: FullyConnected) -> Float[Array, "layer"]:
    """Variances of the weights that leave hidden layers 1 .. L."""
    return jnp.append(system.variances[1:], system.readout_variance)


def input_kernels(system: FullyConnected) -> tuple[Pairs, Pairs]:
    """K^0 of the training set, and between test and training points."""
    x, _ = system.train
    test = jnp.asarray(system.test_inputs, float)
    variance = system.variances[0]
    return input_pairs(x, x, variance), input_pairs(test, x, variance)


def kernels(
    system: FullyConnected, scales: Float[Array, "layer"], closure: str
) -> tuple[Float[Array, "train train"], Float[Array, "test train"], Float[Array, "test"]]:
    """The renormalised kernel: on the training set, test against training points, and the variance of the test points."""
    variances = hidden_and_readout(system)
    train, test = (renormalised(pairs, system.phi, variances, scales, closure) for pairs in input_kernels(system))
    return train.cross, test.cross, test.first


def bare_basis(system: FullyConnected) -> Eigenbasis:
    """The kernel of infinite width without the variance of the read-out, in its eigenbasis: the same for every width, temperature
    and read-out variance."""
    bare = system.with_(readout_variance=1.0)
    return Eigenbasis.of(*kernels(bare, jnp.ones(int(system.depth)), "common"), system.train[1])


def scaled(basis: Eigenbasis, factor: Float[Array, ""] | float) -> Eigenbasis:
    """The basis of the kernel times a number."""
    return Eigenbasis(
        factor * basis.eigenvalues, basis.vectors, basis.targets, factor * basis.rows, factor * basis.diagonal
    )


def predict(
    basis: Eigenbasis, temperature: Float[Array, ""], test_targets: Float[Array, "test *output"]
) -> dict[str, Float[Array, "..."]]:
    """The fields of `Prediction` (or `PredictionOfSeveral`) with the kernel of the basis."""
    targets = basis.targets if basis.targets.ndim == 2 else basis.targets[:, None]
    weights = 1 / (temperature + basis.eigenvalues)
    count, outputs = targets.shape
    mean = basis.rows @ (weights[:, None] * targets)
    variance = jnp.maximum(basis.diagonal - basis.rows**2 @ weights, 0.0)[:, None] * jnp.ones(outputs)
    shape = test_targets.shape
    return losses(
        jnp.sum((temperature * weights[:, None] * targets) ** 2) / count,
        outputs * temperature * jnp.sum(basis.eigenvalues * weights) / count,
        mean.reshape(shape),
        variance.reshape(shape),
        test_targets,
    )


def log_evidence(
    action: Float[Array, ""], widths: Float[Array, "layer"] | Float[Array, ""], examples: int
) -> Float[Array, ""]:
    """-(F - sum_l N_l)/2 - (P/2) log 2 pi."""
    return -(action - jnp.sum(widths)) / 2 - examples / 2 * np.log(2 * np.pi)


def finite_width_scalar(system: FullyConnected) -> RenormalisedNetwork:
    """Depth one, or the closure with a common scale; one output."""
    if system.phi.parity != "odd" and system.depth == 1:
        return _with_mean(system)
    return _with_common_scale(system)


def _with_common_scale(system: FullyConnected) -> RenormalisedNetwork:
    temperature, widths = jnp.asarray(system.temperature, float), system.widths
    basis = scaled(bare_basis(system), system.readout_variance)
    lowest = jax.tree.map(lambda x: x[0], common_scale.minima(basis.eigenvalues, basis.power, temperature, widths))
    renormalised_basis = scaled(basis, jnp.prod(lowest.order_parameters))
    return RenormalisedNetwork(
        **predict(renormalised_basis, temperature, jnp.asarray(system.test_targets, float)),
        order_parameters=lowest.order_parameters,
        mean_scales=lowest.order_parameters,
        action=lowest.action,
        log_evidence=log_evidence(lowest.action, widths, basis.eigenvalues.shape[0]),
        residual=lowest.residual,
        converged=lowest.found & reached(lowest.residual),
    )


def _with_mean(system: FullyConnected) -> RenormalisedNetwork:
    temperature, width = jnp.asarray(system.temperature, float), system.widths[0]
    centred = centred_kernel(system)
    scale, kappa, residual = mean_direction.stationary(centred, temperature, width)
    action = mean_direction.action(centred, temperature, width, scale, kappa)
    return RenormalisedNetwork(
        **mean_direction.predict(centred, temperature, scale, kappa, jnp.asarray(system.test_targets, float)),
        order_parameters=scale[None],
        mean_scales=kappa[None],
        action=action,
        log_evidence=log_evidence(action, jnp.zeros(()), system.train[1].shape[0]),  # F has no constant N here
        residual=residual,
        converged=reached(residual),
    )


def centred_kernel(system: FullyConnected) -> Centred:
    """The kernel of one hidden layer with the mean of its activation apart."""
    train, test = input_kernels(system)
    root = jnp.sqrt(jnp.asarray(system.readout_variance, float))
    means = root * system.phi.mean(train.first), root * system.phi.mean(test.first)
    return Centred.of(*kernels(system, jnp.ones(1), "common"), *means, system.train[1])
