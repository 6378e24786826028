"""Gaussian-process regression: the posterior of an infinitely wide network at a temperature, for
given kernel matrices.

Training noise at temperature T on the loss L = (1/2) sum (f(x_mu) - y_mu)^2 samples exp(-L / T)
times the prior. At infinite width the prior over functions is a Gaussian process with kernel K, and
the posterior is (Rasmussen and Williams 2006, section 2.2)

    mean(x)      = k(x)^T (K + T)^{-1} y
    cov(x, x')   = K(x, x') - k(x)^T (K + T)^{-1} k(x')
                   (the variance of f itself, without observation noise)
    log evidence = -(1/2) y^T (K + T)^{-1} y - (1/2) log det(K + T) - (n/2) log 2 pi

with T the ridge added to the Gram matrix (the `alpha` of scikit-learn, the `noise` of other
packages).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jaxtyping import Array, Float, Num

from orderparam.core.result import Result
from orderparam.core.system import is_number
from orderparam.kernels.gram import checked_gram


class KernelPosterior(Result):
    """Posterior of the network's output at test points, with its fit and evidence on the training
    set.

    mean, variance: of f at the test points (without observation noise). fitted: posterior mean at
    the training points. discrepancy: (K + T)^{-1} y = (y - fitted) / T. log_evidence: log p(y),
    with the Gaussian constants. jitter: the number added to the diagonal of K besides T at the
    caller's request.
    """

    mean: Float[Array, "test"]
    variance: Float[Array, "test"]
    fitted: Float[Array, "train"]
    discrepancy: Float[Array, "train"]
    log_evidence: Float[Array, ""]
    jitter: Float[Array, ""]


class Conditioned(eqx.Module):
    """A Gaussian process conditioned on training data: one Cholesky factorisation, then any number
    of predictions.

    cholesky: lower factor of K + T + jitter. discrepancy: (K + T)^{-1} y. fitted: posterior mean at
    the training points.
    """

    cholesky: Float[Array, "train train"]
    discrepancy: Float[Array, "train"]
    fitted: Float[Array, "train"]
    log_evidence: Float[Array, ""]
    jitter: Float[Array, ""]

    @property
    def inverse_diagonal(self) -> Float[Array, "train"]:
        """[(K + T)^{-1}]_mumu."""
        half = jsl.solve_triangular(self.cholesky, jnp.eye(self.cholesky.shape[0]), lower=True)
        return jnp.sum(half**2, axis=0)

    @jax.jit
    def mean(self, kernel_cross: Float[Array, "test train"]) -> Float[Array, "test"]:
        """k(x)^T (K + T)^{-1} y."""
        return kernel_cross @ self.discrepancy

    @jax.jit
    def variance(
        self, kernel_cross: Float[Array, "test train"], kernel_diagonal: Float[Array, "test"]
    ) -> Float[Array, "test"]:
        """K(x, x) - k(x)^T (K + T)^{-1} k(x), at least zero."""
        half = jsl.solve_triangular(self.cholesky, kernel_cross.T, lower=True)
        return jnp.maximum(kernel_diagonal - jnp.sum(half**2, axis=0), 0.0)

    @jax.jit
    def covariance(
        self, kernel_cross: Float[Array, "test train"], kernel_test: Float[Array, "test test"]
    ) -> Float[Array, "test test"]:
        """K(x, x') - k(x)^T (K + T)^{-1} k(x')."""
        half = jsl.solve_triangular(self.cholesky, kernel_cross.T, lower=True)
        return kernel_test - half.T @ half


def condition(
    kernel_train: Float[Array, "train train"],
    targets: Float[Array, "train"],
    temperature: Num[Array, ""] | float,
    *,
    jitter: float = 0.0,
) -> Conditioned:
    """Conditions the Gaussian process with kernel K on `targets` observed with noise variance
    `temperature`.

    jitter: added to the diagonal on top of the temperature; it changes the posterior, and is added
    only on request.

    Raises `ValueError` for shapes that do not fit, a kernel that is not symmetric, a negative or
    NaN temperature or jitter, and when K + T is not positive definite to working precision (two
    equal inputs at T = 0, say); under jit or vmap the result is NaN instead.
    """
    kernel_train, targets = checked_gram(kernel_train, targets, "kernel_train", outputs=False)
    noise = _noise(temperature, jitter)
    conditioned = _condition(kernel_train, targets, *noise)
    _refuse_singular(conditioned.log_evidence, kernel_train, temperature, jitter)
    return conditioned


def _noise(
    temperature: Num[Array, ""] | float, jitter: Num[Array, ""] | float
) -> tuple[Array, Array]:
    """Temperature and jitter as arrays; refuses numbers that are negative, infinite or NaN."""
    for name, value in {"temperature": temperature, "jitter": jitter}.items():
        if is_number(value) and not (0 <= float(value) < np.inf):
            raise ValueError(f"{name} = {value}: must be a finite number >= 0")
    return jnp.asarray(temperature, float), jnp.asarray(jitter, float)


def _refuse_singular(log_evidence: Array, kernel: Array, temperature: Any, jitter: Any) -> None:
    if not isinstance(log_evidence, jax.core.Tracer) and bool(jnp.isnan(log_evidence)):
        raise ValueError(_why_singular(np.asarray(kernel), float(temperature), float(jitter)))


@jax.jit
def _condition(kernel: Array, targets: Array, temperature: Array, jitter: Array) -> Conditioned:
    n = targets.shape[0]
    ridge = temperature + jitter
    cholesky = _factor(kernel, ridge)
    discrepancy = jsl.cho_solve((cholesky, True), targets)
    fitted = targets - ridge * discrepancy  # K (K + T)^{-1} y
    log_det = 2 * jnp.sum(jnp.log(jnp.diag(cholesky)))
    log_evidence = -(targets @ discrepancy + log_det + n * jnp.log(2 * jnp.pi)) / 2
    return Conditioned(cholesky, discrepancy, fitted, log_evidence, jitter)


def _factor(kernel: Array, ridge: Array) -> Float[Array, "train train"]:
    """Lower Cholesky factor L of K + ridge; NaN where that is not positive definite to working
    precision."""
    n = kernel.shape[0]
    cholesky = jnp.linalg.cholesky(kernel + ridge * jnp.eye(n), symmetrize_input=False)
    pivots = jnp.diag(cholesky) ** 2
    # A pivot at rounding level is noise: the factorisation succeeded by chance, and its solution
    # has no correct digit.
    singular = jnp.min(pivots) <= n * jnp.finfo(float).eps * jnp.max(pivots)
    return jnp.where(singular, jnp.nan, cholesky)


@jax.jit
def _posterior(
    kernel: Array, cross: Array, diagonal: Array, targets: Array, temperature: Array, jitter: Array
) -> KernelPosterior:
    """The posterior from the halves L^{-1} y and L^{-1} k(x), which mean, variance and evidence
    share."""
    n = targets.shape[0]
    ridge = temperature + jitter
    cholesky = _factor(kernel, ridge)
    halves = jsl.solve_triangular(
        cholesky, jnp.concatenate([targets[:, None], cross.T], axis=1), lower=True
    )
    half, halves = halves[:, 0], halves[:, 1:]
    discrepancy = jsl.solve_triangular(cholesky, half, lower=True, trans=1)
    log_det = 2 * jnp.sum(jnp.log(jnp.diag(cholesky)))
    return KernelPosterior(
        mean=half @ halves,
        variance=jnp.maximum(diagonal - jnp.sum(halves**2, axis=0), 0.0),
        fitted=targets - ridge * discrepancy,
        discrepancy=discrepancy,
        log_evidence=-(half @ half + log_det + n * jnp.log(2 * jnp.pi)) / 2,
        jitter=jitter,
    )


def gp_posterior(
    kernel_train: Float[Array, "train train"],
    kernel_cross: Float[Array, "test train"],
    kernel_test: Float[Array, "test"] | Float[Array, "test test"],
    targets: Float[Array, "train"],
    temperature: Num[Array, ""] | float,
    *,
    jitter: float = 0.0,
) -> KernelPosterior:
    """Posterior mean and variance at test points, log evidence and discrepancy field, in one call.

    kernel_cross: K(x_test, x_train). kernel_test: the diagonal K(x, x) of the test points, or their
    full matrix. For the covariance between test points, or several predictions from one
    factorisation, use `condition`; for several outputs, `jax.vmap` over the targets shares the
    factorisation. Raises the errors of `condition`.
    """
    kernel_train, targets = checked_gram(kernel_train, targets, "kernel_train", outputs=False)
    kernel_cross, kernel_test = jnp.asarray(kernel_cross, float), jnp.asarray(kernel_test, float)
    diagonal = jnp.diagonal(kernel_test) if kernel_test.ndim == 2 else kernel_test
    if diagonal.ndim != 1:
        raise ValueError(
            f"kernel_test has shape {kernel_test.shape}: must be (test,) or (test, test)"
        )
    expected = (diagonal.shape[0], kernel_train.shape[0])
    if kernel_cross.shape != expected:
        raise ValueError(
            f"kernel_cross has shape {kernel_cross.shape}: must be (test, train) = {expected}"
        )
    noise = _noise(temperature, jitter)
    posterior = _posterior(kernel_train, kernel_cross, diagonal, targets, *noise)
    _refuse_singular(posterior.log_evidence, kernel_train, temperature, jitter)
    return posterior


class Spectral(eqx.Module):
    """The training kernel in its eigenbasis, K = U diag(eigenvalues) U^T: every further temperature
    costs O(n^2) only.

    `jax.vmap` over the temperature of any method gives a whole sweep from one O(n^3) decomposition.
    """

    eigenvalues: Float[Array, "train"]
    eigenvectors: Float[Array, "train train"]
    targets: Float[Array, "train"]

    def _weights(self, temperature: Num[Array, ""] | float) -> Float[Array, "train"]:
        return 1 / (self.eigenvalues + temperature)

    @jax.jit
    def discrepancy(self, temperature: Num[Array, ""] | float) -> Float[Array, "train"]:
        """(K + T)^{-1} y."""
        return self.eigenvectors @ (
            self._weights(temperature) * (self.eigenvectors.T @ self.targets)
        )

    @jax.jit
    def log_evidence(self, temperature: Num[Array, ""] | float) -> Float[Array, ""]:
        """log p(y) of the training targets."""
        weights = self._weights(temperature)
        coefficients = self.eigenvectors.T @ self.targets
        n = self.targets.shape[0]
        return (
            -(
                jnp.sum(weights * coefficients**2)
                - jnp.sum(jnp.log(weights))
                + n * jnp.log(2 * jnp.pi)
            )
            / 2
        )

    @jax.jit
    def most_likely_noise(self) -> Float[Array, ""]:
        """The variance of label noise with the largest evidence, when the amplitude a of the prior
        covariance a K is free.

        At fixed ratio g = s2/a of noise to amplitude the evidence is largest at a = y^T (K +
        g)^{-1} y / n; g is scanned from 1e-10 to 10 times the largest eigenvalue, 50 values a
        decade (type-II maximum likelihood: Rasmussen and Williams 2006, section 5.4.1). The part of
        the targets that this kernel cannot explain counts as noise.
        """
        squares = (self.eigenvectors.T @ self.targets) ** 2
        ratios = self.eigenvalues[-1] * jnp.geomspace(1e-10, 10.0, 551)

        def profile(ratio: Array) -> tuple[Array, Array]:
            weights = self._weights(ratio)
            amplitude = jnp.mean(weights * squares)
            return jnp.mean(jnp.log(weights)) - jnp.log(amplitude), amplitude * ratio

        evidence, noise = jax.vmap(profile)(ratios)
        return noise[jnp.argmax(evidence)]

    @jax.jit
    def leave_one_out(self, temperature: Num[Array, ""] | float) -> Float[Array, "train"]:
        """Leave-one-out residuals, y_mu minus the posterior mean at x_mu trained without x_mu:
        discrepancy_mu / [(K + T)^{-1}]_mumu."""
        inverse_diagonal = (self.eigenvectors**2) @ self._weights(temperature)
        return self.discrepancy(temperature) / inverse_diagonal

    @jax.jit
    def posterior(
        self,
        kernel_cross: Float[Array, "test train"],
        kernel_diagonal: Float[Array, "test"],
        temperature: Num[Array, ""] | float,
    ) -> KernelPosterior:
        """The posterior of `gp_posterior`, from the eigenbasis."""
        rotated = kernel_cross @ self.eigenvectors
        weights = self._weights(temperature)
        coefficients = self.eigenvectors.T @ self.targets
        return KernelPosterior(
            mean=rotated @ (weights * coefficients),
            variance=jnp.maximum(kernel_diagonal - (rotated**2) @ weights, 0.0),
            fitted=self.eigenvectors @ (self.eigenvalues * weights * coefficients),
            discrepancy=self.discrepancy(temperature),
            log_evidence=self.log_evidence(temperature),
            jitter=jnp.zeros(()),
        )


def diagonalise(
    kernel_train: Float[Array, "train train"], targets: Float[Array, "train"]
) -> Spectral:
    """Eigendecomposition of the training kernel, for many temperatures. Eigenvalues below zero by
    rounding become zero.

    A temperature must then be above the rounding error of the smallest eigenvalues, about 1e-16 of
    the largest times n. Raises `ValueError` for shapes that do not fit, and for an eigenvalue that
    is negative beyond rounding.
    """
    kernel_train, targets = checked_gram(kernel_train, targets, "kernel_train", outputs=False)
    eigenvalues, eigenvectors = jnp.linalg.eigh(kernel_train, symmetrize_input=False)
    if not isinstance(eigenvalues, jax.core.Tracer):
        lowest, highest = float(eigenvalues[0]), float(eigenvalues[-1])
        if lowest < -1e-10 * abs(highest):
            raise ValueError(
                f"kernel_train has the eigenvalue {lowest:.3g} (largest {highest:.3g}): a kernel "
                "has none below zero"
            )
    return Spectral(jnp.maximum(eigenvalues, 0.0), eigenvectors, targets)


def _why_singular(kernel: np.ndarray, temperature: float, jitter: float) -> str:
    message = (
        f"the training kernel plus temperature {temperature:g} plus jitter {jitter:g} is not "
        "positive definite"
    )
    scale = np.sqrt(np.maximum(np.outer(np.diag(kernel), np.diag(kernel)), 0.0))
    same = np.triu(np.abs(kernel - scale) <= 1e-14 * scale, 1) & np.isclose(
        np.diag(kernel)[:, None], np.diag(kernel)
    )
    if same.any():
        first, second = np.argwhere(same)[0]
        return (
            f"{message}: training points {first} and {second} are the same input; remove one, or "
            "raise the temperature"
        )
    largest = float(np.linalg.eigvalsh(kernel)[-1])
    return (
        f"{message} to float64 precision (largest eigenvalue {largest:.3g}): raise the "
        "temperature, or ask for a jitter"
    )
