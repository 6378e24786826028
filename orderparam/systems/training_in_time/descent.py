"""Theory of gradient descent with momentum on features with any spectrum, averaged over training
sets, at every step."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Complex, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.training_in_time.model import PoolDescent, SpectralDescent
from orderparam.systems.training_in_time.polynomial import Contour, contour, trace, upper_edge
from orderparam.systems.training_in_time.resolvent import quadratic

Scalar = Float[Array, ""]
Steps = Float[Array, "step"]

# number of eigenvalues at which the contour is compared with the polynomial itself
_PROBES = 65
_ACCURATE = 1e-6


class SpectralDescentError(Result):
    """Errors along gradient descent, averaged over training sets, the start included.

    Fields:
        test_error: E (f(x) - theta.x)^2 on new inputs, without label noise, after 0, 1, ... steps.
        train_error: E (1/n) |X w - y|^2 against the noisy labels, at the same steps.
        residual: largest error of the contour integrals of all steps, and of the equations for
            kappa.
        converged: whether the residual is below 1e-6.
    """

    test_error: Steps
    train_error: Steps
    residual: Scalar
    converged: Bool[Array, ""]


@theory
def spectral_descent_error(system: SpectralDescent) -> SpectralDescentError:
    r"""Errors after every step of gradient descent with momentum, averaged over training sets.

    With the residual polynomial $r_k(S)$ of the heavy ball, $g_k = (1 - r_k)/(S + \lambda)$ and
    $f_k = 1 - S g_k$, the weights are
    $\theta + r_k w_0 - f_k \theta + \sqrt\Delta\, g_k X^T \xi/n$, so that

    $$ E_k = E \big| \Sigma^{1/2} (r_k w_0 - f_k \theta) \big|^2 + \frac{\Delta}{n}\,
       E\, \mathrm{tr}\, \Sigma S g_k^2 , \qquad
       E^\mathrm{train}_k = E \big| S^{1/2} (r_k w_0 - f_k \theta) \big|^2 + \frac{\Delta}{n}\,
       E\, \mathrm{tr}\, (1 - S g_k)^2 $$

    where the last trace is over the n examples. Every polynomial of S is a contour integral of the
    resolvent of S around its spectrum, and the deterministic equivalent of this resolvent is known
    for many features and examples. The first average is a double integral.

    Accuracy: 1e-12 where training is stable and for momentum up to 0.9; `residual` bounds it.
    With momentum near 1, or where training diverges, the polynomials become too large outside the
    spectrum, and `converged` is false.

    Cost: with M = 32 + 20 sqrt(steps), of order M^2 * (levels + steps).

    Source: derived here. For isotropic features the result equals that of `descent_error`, and for
    small learning rates that of `gradient_flow_error`.

    >>> from orderparam.kernels.spectrum import Spectrum
    >>> system = SpectralDescent(Spectrum([1.0, 0.1], [0.5, 0.5], [20, 80]), n_train=60, steps=10)
    >>> found = spectral_descent_error(system)
    >>> round(float(found.test_error[0]), 6), bool(found.converged)
    (1.0, True)
    """
    spectrum, n = system.spectrum, system.n_train
    around = contour(spectrum, n, system.steps)
    z, sigma, many = around.nodes, spectrum.eigenvalues, spectrum.multiplicities
    left, grown = _polynomials(system, z)
    unlearned = 1 - z * grown

    def pairs(values: Complex[Array, "node"], power: Float[Array, "level"]) -> Scalar:
        return quadratic(around.weights * values, around.left, power, spectrum, n)

    def single(values: Complex[Array, "step node"], power: Float[Array, "level"]) -> Steps:
        return jax.vmap(lambda row: trace(around, row, power))(values)

    weights = system.start * many
    test = jax.vmap(lambda row: pairs(row, spectrum.target_power))(unlearned)
    test = test + jax.vmap(lambda row: pairs(row, sigma * weights))(left)
    test = test + system.noise / n * single(z * grown**2, sigma * many)
    train = single(z * unlearned**2, spectrum.target_power / sigma)
    train = train + single(z * left**2, weights)
    fitted = 1 - unlearned
    train = train + system.noise * (1 - single(2 * fitted - fitted**2, many) / n)

    residual = jnp.maximum(_error_of_contour(system, around, left, grown), around.residual)
    residual = jax.lax.stop_gradient(jnp.where(jnp.isfinite(residual), residual, jnp.inf))
    return SpectralDescentError(
        test_error=test,
        train_error=train,
        residual=residual,
        converged=residual < _ACCURATE,
    )


def _error_of_contour(
    system: SpectralDescent, around: Contour, left: Steps, grown: Steps
) -> Scalar:
    """Largest error of the contour integrals of those polynomials that enter the errors.

    Polynomials of S are compared with their values at eigenvalues between 0 and the upper edge.
    The polynomials of the weights are of order 1 where training is stable, so that their absolute
    error is taken; the error of the polynomial of the noise is divided by its largest value. The
    rounding error of double integrals is proportional to the square of the summed terms.
    """
    z, probes = around.nodes, jnp.linspace(0, 1, _PROBES)
    probes = probes * upper_edge(system.spectrum, system.n_train)
    at_probes = _parts(probes, *_polynomials(system, probes))
    cauchy = around.weights[:, None] * z[:, None] / (z[:, None] - probes)
    scale = jnp.asarray([1.0, 1.0, jnp.max(jnp.abs(at_probes[2]))])
    wrong = jnp.abs(jnp.real(_parts(z, left, grown) @ cauchy) - at_probes)
    summed = jnp.max(jnp.abs(jnp.stack([left, 1 - z * grown])) @ jnp.abs(around.weights))
    return jnp.maximum(
        jnp.max(wrong / scale[:, None, None]), jnp.finfo(summed.dtype).eps * summed**2
    )


def _parts(s: Array, left: Array, grown: Array) -> Array:
    """r^2, (1 - S g)^2 and S g^2 at the eigenvalues s, for all steps."""
    return jnp.stack([left**2, (1 - s * grown) ** 2, s * grown**2])


class PoolError(Result):
    """Errors along training on examples drawn from a pool.

    Fields:
        step: the recorded numbers of steps.
        test_error: mean square of f - (1 - 2p) y over the pool, after these numbers of steps.
        best_step: the recorded number of steps with the smallest error.
        cost_of_training_on: error after the last step divided by the smallest error.
        residual: in the theory, the residual of `spectral_descent_error`; 0 in experiments.
        converged: whether all errors are finite, and in the theory whether the residual is below
            1e-6.

    In an experiment `best_step` and `cost_of_training_on` are computed from the errors of one run,
    and in the theory from the mean error. Their means over runs therefore differ a little from the
    theory.
    """

    step: Float[Array, "record"]
    test_error: Float[Array, "record"]
    best_step: Scalar
    cost_of_training_on: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


@theory
def pool_error(system: PoolDescent) -> PoolError:
    r"""Errors of an infinitely wide network along training, averaged over the drawn examples.

    The tangent kernel $\Theta$ of the pool of N inputs has the eigenvectors $u_k$ and eigenvalues
    $N \sigma_k$. Training is `SpectralDescent` on features with the variances $\sigma_k$, the
    target power $(1 - 2p)^2 (u_k \cdot y)^2/N$, label noise $4 p (1 - p)$ and the learning rate n
    $\eta$. `width` is not used.

    Accuracy: the eigenvectors are assumed to be Gaussian features. On images of digits the error is
    within a few per cent of the measured error up to the best step, and too low or too high long
    after it.

    Cost: one eigendecomposition of an N x N matrix.

    Source: derived here.

    >>> import jax.numpy as jnp
    >>> from orderparam.networks.fully_connected import fully_connected
    >>> system = PoolDescent(jnp.eye(4), [1, -1, 1, 1], fully_connected(1, None, "relu"), steps=4)
    >>> pool_error(system).test_error.shape
    (4,)
    """
    size = len(system.labels)
    sigma, modes = jnp.linalg.eigh(system.architecture.kernel(system.inputs).ntk / size)
    # modes whose eigenvalues are 0 up to rounding are never learned
    sigma = jnp.maximum(sigma, 1e-14 * sigma[-1])
    mean = 1 - 2 * system.flipped
    power = (mean * (modes.T @ system.labels)) ** 2 / size
    path = spectral_descent_error.fn(
        SpectralDescent(
            Spectrum(sigma, power),
            jnp.asarray(system.n_train, float),
            system.n_train * system.learning_rate,
            noise=1 - mean**2,
            steps=system.steps,
        )
    )
    return stopped(system, path.test_error[system.recorded], path.residual)


def stopped(
    system: PoolDescent, errors: Float[Array, "record"], residual: Scalar | float = 0.0
) -> PoolError:
    """The best of the recorded numbers of steps, and the factor by which training to the last step
    increases the error."""
    best, step = (
        jnp.argmin(jnp.where(jnp.isnan(errors), jnp.inf, errors)),
        jnp.asarray(system.recorded, float),
    )
    return PoolError(
        step=step,
        test_error=errors,
        best_step=step[best],
        cost_of_training_on=errors[-1] / errors[best],
        residual=jnp.asarray(residual, float),
        converged=jnp.all(jnp.isfinite(errors)) & (residual < _ACCURATE),
    )


def _polynomials(system: SpectralDescent, s: Array) -> tuple[Array, Array]:
    """r_k and g_k at the eigenvalues s of S, for k = 0, 1, ..., steps."""
    rate, beta = system.learning_rate, system.momentum

    def advance(state: Any, _: None) -> tuple[Any, Any]:
        left, left_before, grown, grown_before = state
        following = left - rate * (s + system.weight_decay) * left + beta * (left - left_before)
        pull = 1 - (s + system.weight_decay) * grown
        more = grown + rate * pull + beta * (grown - grown_before)
        return (following, left, more, grown), (following, more)

    one, zero = jnp.ones_like(s), jnp.zeros_like(s)
    _, (left, grown) = jax.lax.scan(advance, (one, one, zero, zero), length=system.steps)
    return jnp.concatenate([one[None], left]), jnp.concatenate([zero[None], grown])
