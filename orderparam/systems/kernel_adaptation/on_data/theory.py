"""Theories on one given training set: the infinitely wide network, its kernel rescaled, and
Gaussian weights of full covariance.

Gaussian weights w ~ N(0, Sigma), Sigma = (v/d) L L^T (v the weight variance), K(Sigma)_mu nu = s E
phi(w . x_mu) phi(w . x_nu):

    F/N = |L|^2/2 - sum_i log L_ii + [ y^T (K + T)^{-1} y + log det(K + T) ] / (2N).

Its stationarity is the kernel-adaptation equation  Sigma^{-1} = (d/v) 1 - (1/N) sum A_mu nu dK_mu
nu/dSigma  with A = t t^T - (K + T)^{-1}, t = (K + T)^{-1} y  (Seroussi, Naveh, Ringel 2023). The
log det is the fluctuation of the output; without it the theory is that of the mean-field limit. F
has the Kullback-Leibler divergence up to the constant d/2.

For linear units without the log det, Sigma has one outlier, equal to the scale Q of the rescaled
kernel, and the two theories make the same prediction.
"""

from typing import NamedTuple

import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float

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
    """action: F/N, without the constants of its divergence."""

    action: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class ScaledKernelOnData(DataPrediction):
    """kernel_scale: Q, by which the kernel of the infinitely wide network is multiplied."""

    kernel_scale: Float[Array, ""]


class Covariances(NamedTuple):
    """Of a Gaussian field on the training points, between test and training points, and its
    variance at the test points.
    """

    train: Float[Array, "train second"]
    cross: Float[Array, "test train"]
    variance: Float[Array, "test"]


def first_layer(
    system: NetworkOnData, factor: Float[Array, "input input"], test: bool = True
) -> Covariances:
    """Of w . x with w ~ N(0, (v/d) L L^T). test: whether the test points are carried along."""
    scale = jnp.sqrt(system.weight_variance / system.inputs.shape[1])
    x, other = (
        scale * points @ factor
        for points in (system.inputs, system.test_inputs[: None if test else 0])
    )
    return Covariances(x @ x.T, other @ x.T, jnp.sum(other**2, axis=1))


def next_layer(phi: Activation, scale: float | Array, below: Covariances) -> Covariances:
    """scale * E phi phi^T: of a Gaussian layer above, or of the output."""
    diagonal, variance = jnp.diagonal(below.train), below.variance
    return Covariances(
        scale * phi.two_point(diagonal[:, None], below.train, diagonal[None, :]),
        scale * phi.two_point(variance[:, None], below.cross, diagonal[None, :]),
        scale * phi.two_point(variance, variance, variance),
    )


def output_kernel(
    system: NetworkOnData, factor: Float[Array, "input input"], test: bool = True
) -> Covariances:
    """K of one hidden layer."""
    return next_layer(system.activation, system.readout_variance, first_layer(system, factor, test))


@theory(check=two_layers)
def gaussian_process_on_data(system: NetworkOnData) -> ScaledKernelOnData:
    """The infinitely wide network: Gaussian-process regression with the kernel of the prior. Its
    action is minus the log evidence log p(y) over N, without the constant (n/2) log 2 pi."""
    basis = _prior_basis(system)
    # no divergence: the action is that of the data alone
    one, width = jnp.ones((1,)), jnp.zeros((1,))
    fit = action(one, width, basis.eigenvalues, basis.power, jnp.asarray(system.temperature)) / (
        2 * system.width
    )
    return _scaled(system, basis, one[0], fit, jnp.zeros(()))


@theory(check=two_layers)
def kernel_scaling_on_data(
    system: NetworkOnData, *, fluctuations: bool = True
) -> ScaledKernelOnData:
    """The kernel times Q, the minimum of  N (Q - log Q) + y^T (T + Q K)^{-1} y + log det(T + Q K)
    (Li and Sompolinsky 2021; Pacelli et al. 2023), from one eigendecomposition. The lowest minimum;
    action is half of this over N.

    fluctuations: whether the log det is there.
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
    """Gaussian weights of full covariance: the minimum of F next to the prior, by L-BFGS on the
    Cholesky factor L, O(n^3 + n^2 d) a step. Accurate to 1e-7: `residual` is the largest entry of
    dF/dL / N, below 1e-8 where converged.

    fluctuations: whether F has its log det.
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
    kernel = output_kernel(system, root)
    mean = kernel.cross @ jsl.solve(kernel.train + noise, y, assume_a="pos")
    return DataPrediction(
        **on_test_set(system, mean, root @ root.T),
        action=value(found.value),
        residual=found.residual,
        converged=found.converged,
    )
