"""Theories on one given training set: the infinitely wide network, its kernel rescaled, and Gaussian weights of full covariance.

Gaussian weights w ~ N(0, Sigma), Sigma = (v/d) L L^T (v the weight variance), K(Sigma)_mu nu = s E phi(w . x_mu) phi(w . x_nu):

    F/N = |L|^2/2 - sum_i log L_ii + [ y^T (K + T)^{-1} y + log det(K + T) ] / (2N).

Its stationarity is the kernel-adaptation equation  Sigma^{-1} = (d/v) 1 - (1/N) sum A_mu nu dK_mu nu/dSigma  with
A = t t^T - (K + T)^{-1}, t = (K + T)^{-1} y  (Seroussi, Naveh, Ringel 2023). The log det is the fluctuation of the output;
without it the theory is that of the mean-field limit. F has the Kullback-Leibler divergence up to the constant d/2.

For linear units without the log det, Sigma has one outlier, equal to the scale Q of the rescaled kernel, and the two theories
make the same prediction.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float

from orderparam.kernels.common_scale import Eigenbasis, minima
from orderparam.solve.descent import TOLERANCE, descend
from orderparam.systems.kernel_adaptation.on_data.prediction import OnTestSet, on_test_set
from orderparam.systems.kernel_adaptation.two_layers.model import NetworkOnData


class DataPrediction(OnTestSet):
    """action: F/N (theory dependent). scale: Q, by which the kernel of the infinitely wide network is multiplied (NaN if it is
    not)."""

    action: Float[Array, ""]
    scale: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def kernels(system: NetworkOnData, factor: Float[Array, "input input"]) -> tuple[Array, Array, Array]:
    """K on the training set, between test and training points, and its diagonal at the test points; Sigma = (v/d) L L^T."""
    scale = jnp.sqrt(jnp.asarray(system.weight_variance, float) / system.inputs.shape[1])
    x, test = (scale * jnp.asarray(points, float) @ factor for points in (system.inputs, system.test_inputs))
    own, other = jnp.sum(x**2, axis=1), jnp.sum(test**2, axis=1)
    variance, phi = jnp.asarray(system.readout_variance, float), system.phi
    gram = (x @ x.T).at[jnp.arange(x.shape[0]), jnp.arange(x.shape[0])].set(own)
    return (
        variance * phi.two_point(own[:, None], gram, own[None, :]),
        variance * phi.two_point(other[:, None], test @ x.T, own[None, :]),
        variance * phi.two_point(other, other, other),
    )


def _summary(system: NetworkOnData, mean: Array, factor: Array, **fields: Any) -> DataPrediction:
    return DataPrediction(**on_test_set(system, mean, factor @ factor.T), **fields)


@eqx.filter_jit
def gaussian_process_on_data(system: NetworkOnData) -> DataPrediction:
    """The infinitely wide network: Gaussian-process regression with the kernel of the prior."""
    basis, factor = _prior_basis(system)
    temperature = jnp.asarray(system.temperature, float)
    zero = jnp.zeros(())
    mean = basis.rows @ (basis.targets / (basis.eigenvalues + temperature))
    return _summary(system, mean, factor, action=zero * jnp.nan, scale=jnp.ones(()), residual=zero, converged=jnp.asarray(True))


@eqx.filter_jit
def kernel_scaling_on_data(system: NetworkOnData, fluctuations: bool = True) -> DataPrediction:
    """The kernel times Q, the minimum of  N (Q - log Q) + y^T (T + Q K)^{-1} y + log det(T + Q K)  (Li and Sompolinsky 2021;
    Pacelli et al. 2023), from one eigendecomposition. The lowest minimum; action is half of this over N.

    fluctuations: whether the log det is there.
    """
    basis, factor = _prior_basis(system)
    temperature = jnp.asarray(system.temperature, float)
    width = jnp.asarray(system.width, float)
    found = minima(basis.eigenvalues, basis.power, temperature, width[None], fluctuations)
    scale = jnp.exp(found.log_scale[0])
    mean = basis.rows @ (scale * basis.targets / (scale * basis.eigenvalues + temperature))
    return _summary(
        system,
        mean,
        factor,
        action=found.action[0] / (2 * width),
        scale=scale,
        residual=found.residual[0],
        converged=found.found[0] & (found.residual[0] < 1e-9),
    )


def _prior_basis(system: NetworkOnData) -> tuple[Eigenbasis, Array]:
    factor = jnp.eye(system.inputs.shape[1])
    return Eigenbasis.of(*kernels(system, factor), jnp.asarray(system.targets, float)), factor


@eqx.filter_jit
def gaussian_weights_on_data(system: NetworkOnData, fluctuations: bool = True) -> DataPrediction:
    """Gaussian weights of full covariance: the minimum of F next to the prior, by L-BFGS on the Cholesky factor L, O(n^3 + n^2 d)
    a step. Accurate to 1e-7: `residual` is the largest entry of dF/dL / N, below 1e-8 where converged.

    fluctuations: whether F has its log det.
    """
    d = system.inputs.shape[1]
    y, width = jnp.asarray(system.targets, float), jnp.asarray(system.width, float)
    temperature = jnp.asarray(system.temperature, float)
    lower = jnp.tril_indices(d)

    def factor(entries: Array) -> Array:
        return jnp.zeros((d, d)).at[lower].set(entries)

    def value(entries: Array) -> Array:
        root = factor(entries)
        cholesky = jnp.linalg.cholesky(kernels(system, root)[0] + temperature * jnp.eye(y.shape[0]))
        fit = jnp.sum(jsl.solve_triangular(cholesky, y, lower=True) ** 2)
        if fluctuations:
            fit += 2 * jnp.sum(jnp.log(jnp.diagonal(cholesky)))
        return jnp.sum(entries**2) / 2 - jnp.sum(jnp.log(jnp.abs(jnp.diagonal(root)))) + fit / (2 * width)

    entries, action, residual = descend(value, jnp.eye(d)[lower])
    root = factor(entries)
    kernel, rows, _ = kernels(system, root)
    mean = rows @ jsl.solve(kernel + temperature * jnp.eye(y.shape[0]), y, assume_a="pos")
    return _summary(
        system,
        mean,
        root,
        action=action,
        scale=jnp.asarray(jnp.nan),
        residual=residual,
        converged=residual < TOLERANCE,
    )
