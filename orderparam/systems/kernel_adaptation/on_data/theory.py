"""Theories on one given training set: the infinitely wide network, its rescaled kernel, and
Gaussian weights of full covariance.

Gaussian weights w ~ N(0, Sigma), Sigma = (v/d) L L^T (v the weight variance), have the kernel
K(Sigma)_mu nu = s E phi(w . x_mu) phi(w . x_nu) and the action

    F/N = |L|^2/2 - sum_i log L_ii + [ y^T (K + T)^{-1} y + log det(K + T) ] / (2N).

The condition that F is stationary is the kernel-adaptation equation Sigma^{-1} = (d/v) 1 - (1/N)
sum A_mu nu dK_mu nu/dSigma with A = t t^T - (K + T)^{-1}, t = (K + T)^{-1} y (Seroussi, Naveh,
Ringel 2023). The log det describes the fluctuations of the output; without this term the theory is
the mean-field limit. The first two terms of F/N are the Kullback-Leibler divergence from the prior
up to the constant d/2.

For linear units without the log det, Sigma has one outlier, equal to the scale Q of the rescaled
kernel, and the two theories make the same prediction.
"""

from typing import NamedTuple

import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.registry import tool
from orderparam.core.verb import theory
from orderparam.gaussian import Activation
from orderparam.kernels.common_scale import Eigenbasis, action, minima
from orderparam.solve.minimum import lbfgs_minimum
from orderparam.systems.kernel_adaptation.on_data.model import (
    NetworkOnData,
    OnTestSet,
    on_test_set,
    two_layers,
)


class DataPrediction(OnTestSet):
    """The posterior mean at the test points and the covariance of the weights, as a theory predicts
    them.

    Fields:
        action: F/N, without the constants of its divergence.
        residual: residual of the equations of the theory.
        converged: whether they were solved.
    """

    action: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class ScaledKernelOnData(DataPrediction):
    """The posterior mean at the test points for a kernel that keeps its shape.

    Fields:
        kernel_scale: Q, the factor of the kernel of the infinitely wide network.
    """

    kernel_scale: Float[Array, ""]


class Covariances(NamedTuple):
    """Covariances of a Gaussian field: on the training points, between test and training points,
    and its variance at the test points.
    """

    train: Float[Array, "train second"]
    cross: Float[Array, "test train"]
    variance: Float[Array, "test"]


def first_layer(
    system: NetworkOnData, factor: Float[Array, "input input"], test: bool = True
) -> Covariances:
    """Covariances of w . x with w ~ N(0, (v/d) L L^T).

    Args:
        factor: L.
        test: whether the test points are included.
    """
    scale = jnp.sqrt(system.weight_variance / system.inputs.shape[1])
    x, other = (
        scale * points @ factor
        for points in (system.inputs, system.test_inputs[: None if test else 0])
    )
    return Covariances(x @ x.T, other @ x.T, jnp.sum(other**2, axis=1))


def next_layer(phi: Activation, scale: float | Array, below: Covariances) -> Covariances:
    """Covariances scale * E phi phi^T of the layer above a Gaussian layer, or of the output."""
    diagonal, variance = jnp.diagonal(below.train), below.variance
    return Covariances(
        scale * phi.two_point(diagonal[:, None], below.train, diagonal[None, :]),
        scale * phi.two_point(variance[:, None], below.cross, diagonal[None, :]),
        scale * phi.two_point(variance, variance, variance),
    )


def output_kernel(
    system: NetworkOnData, factor: Float[Array, "input input"], test: bool = True
) -> Covariances:
    """The kernel K of the output of a network with one hidden layer."""
    return next_layer(system.activation, system.readout_variance, first_layer(system, factor, test))


@theory(check=two_layers)
def gaussian_process_on_data(system: NetworkOnData) -> ScaledKernelOnData:
    r"""Posterior mean of the infinitely wide network at the test points.

    $$ E f(x) = k(x)^T (K + T)^{-1} y, \qquad K = s\, E_{\mathrm{prior}}\, \phi(w \cdot x)\,
       \phi(w \cdot x') $$

    with T the `temperature` and s the `readout_variance`. `action` is minus the log evidence log
    p(y) over N, without the constant (n/2) log 2 pi.

    Raises:
        ValueError: for a network with several hidden layers.

    Accuracy: to rounding.

    Source: Neal (1996); Lee et al. (2018).

    >>> from orderparam.systems.kernel_adaptation import NetworkOnData
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> data = NetworkOnData(x[:5], x[:5, 0], x[5:], x[5:, 0], 8, 0.1)
    >>> round(float(gaussian_process_on_data(data).total_learnability), 6)
    1.092501
    """
    basis = _prior_basis(system)
    # At the prior the divergence is zero, so that the action consists of the term of the data
    # alone.
    one, width = jnp.ones((1,)), jnp.zeros((1,))
    fit = action(one, width, basis.eigenvalues, basis.power, jnp.asarray(system.temperature)) / (
        2 * system.width
    )
    return _scaled(system, basis, one[0], fit, jnp.zeros(()))


@theory(check=two_layers)
def kernel_scaling_on_data(
    system: NetworkOnData, *, fluctuations: bool = True
) -> ScaledKernelOnData:
    r"""Posterior mean at the test points when adaptation multiplies the kernel by one number Q.

    $$ Q = \mathrm{argmin}\; N (Q - \log Q) + y^T (T + Q K)^{-1} y + \log\det(T + Q K) $$

    with N the `width`, K the kernel of `gaussian_process_on_data` and T the `temperature`.
    `kernel_scale` is Q, and `action` half of the minimum over N. The lowest minimum is returned.

    Args:
        fluctuations: whether the log det is included. Default True.

    Raises:
        ValueError: for a network with several hidden layers.

    Accuracy: 1e-9.

    Cost: one eigendecomposition of the kernel.

    Source: Li, Sompolinsky (2021); Pacelli et al. (2023).

    >>> from orderparam.systems.kernel_adaptation import NetworkOnData
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> data = NetworkOnData(x[:5], x[:5, 0], x[5:], x[5:, 0], 8, 0.1)
    >>> round(float(kernel_scaling_on_data(data).kernel_scale), 6)
    1.348997
    """
    basis = _prior_basis(system)
    temperature, width = jnp.asarray(system.temperature), jnp.asarray([system.width])
    found = minima(basis.eigenvalues, basis.power, temperature, width, fluctuations)
    residual = jnp.where(found.found[0], found.residual[0], jnp.inf)
    return _scaled(
        system, basis, jnp.exp(found.log_scale[0]), found.action[0] / (2 * system.width), residual
    )


def _prior_basis(system: NetworkOnData) -> Eigenbasis:
    return Eigenbasis.of(*output_kernel(system, jnp.eye(system.inputs.shape[1])), system.targets)


def _scaled(
    system: NetworkOnData, basis: Eigenbasis, scale: Array, value: Array, residual: Array
) -> ScaledKernelOnData:
    mean = basis.rows @ (scale * basis.targets / (scale * basis.eigenvalues + system.temperature))
    return ScaledKernelOnData(
        **on_test_set(system, mean, jnp.eye(system.inputs.shape[1])),
        action=value,
        residual=residual,
        converged=(residual < 1e-9) & jnp.all(jnp.isfinite(mean)),
        kernel_scale=scale,
    )


@theory(check=two_layers)
def gaussian_weights_on_data(system: NetworkOnData, *, fluctuations: bool = True) -> DataPrediction:
    r"""Posterior mean at the test points for Gaussian weights of full covariance, on a given
    training set.

    $$ \frac FN = \tfrac12 |L|^2 - \sum_i \log L_{ii} + \frac{1}{2N} \big[ y^T (K + T)^{-1} y
       + \log\det(K + T) \big], \qquad w \sim N\big(0, \tfrac vd L L^T\big) $$

    with $K_{\mu\nu} = s\, E\, \phi(w \cdot x_\mu) \phi(w \cdot x_\nu)$, v the `weight_variance`, s
    the `readout_variance`, N the `width` and T the `temperature`. The minimum of F next to the
    prior is found by L-BFGS on the Cholesky factor L; `covariance` is $L L^T$ and `action` is F/N.

    Args:
        fluctuations: whether F contains the log det. Default True.

    Raises:
        ValueError: for a network with several hidden layers.

    Accuracy: 1e-7; `residual` is the largest entry of dF/dL / N, below 1e-8 where converged.

    Cost: O(n^3 + n^2 d) for each step.

    Source: Seroussi, Naveh, Ringel (2023).

    >>> from orderparam.systems.kernel_adaptation import NetworkOnData
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> data = NetworkOnData(x[:5], x[:5, 0], x[5:], x[5:, 0], 8, 0.1)
    >>> round(float(gaussian_weights_on_data(data).spread), 5)
    1.16341
    """
    d = system.inputs.shape[1]
    y, noise = system.targets, system.temperature * jnp.eye(system.targets.shape[0])
    lower = jnp.tril_indices(d)

    def factor(entries: Array) -> Array:
        return jnp.zeros((d, d)).at[lower].set(entries)

    def value(entries: Array) -> Array:
        root = factor(entries)
        cholesky = jnp.linalg.cholesky(output_kernel(system, root, test=False).train + noise)
        fit = jnp.sum(jsl.solve_triangular(cholesky, y, lower=True) ** 2)
        if fluctuations:
            fit += 2 * jnp.sum(jnp.log(jnp.diagonal(cholesky)))
        return (
            jnp.sum(entries**2) / 2
            - jnp.sum(jnp.log(jnp.abs(jnp.diagonal(root))))
            + fit / (2 * system.width)
        )

    found = lbfgs_minimum(value, jnp.eye(d)[lower])
    root = factor(found.value)
    # Regression with the kernel of the adapted weights.
    kernel = output_kernel(system, root)
    mean = kernel.cross @ jsl.solve(kernel.train + noise, y, assume_a="pos")
    return DataPrediction(
        **on_test_set(system, mean, root @ root.T),
        action=value(found.value),
        residual=found.residual,
        converged=found.converged,
    )


# ------------------------------------------------------------------------------------------------
# Prediction of a Bayesian two-layer network, and of its first layer, on data of your own.


@tool
def predict_adaptation(
    train: tuple[Float[np.ndarray, "train input"], Float[np.ndarray, "train"]],
    test: tuple[Float[np.ndarray, "test input"], Float[np.ndarray, "test"]],
    width: int,
    temperature: float,
    weight_variance: float,
    readout_variance: float,
    activation: str,
) -> DataPrediction:
    """Predicted mean output of a Bayesian two-layer network on data of your own, and predicted
    covariance of its first-layer weights.

    Args:
        train, test: Inputs and targets.
        width: Hidden units N.
        temperature: T, the variance of the observation noise.
        weight_variance: Prior mean of |w|^2 of a hidden unit.
        readout_variance: Prior variance of sqrt(N) a.
        activation: "erf" or "relu", or another one that has its Gaussian averages in closed form.

    Source: Seroussi, Naveh and Ringel (2023), by `gaussian_weights_on_data`.
    """
    system = NetworkOnData(
        *train,
        *test,
        width,
        temperature,
        readout_variance,
        weight_variance,
        activation=activation,
    )
    return gaussian_weights_on_data(system)
