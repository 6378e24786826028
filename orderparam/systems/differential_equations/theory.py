"""Theory of differential equations: learning curves of the residual and of the solution."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import effective_ridge, ratio
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.differential_equations.model import (
    FREQUENCIES,
    EquationNetwork,
    EquationRegression,
    circle,
)

Scalar = Float[Array, ""]
SAMPLES = 512  # number of points at which the tangent kernel on the circle is evaluated


class EquationErrors(Result):
    """Errors of an estimate of the solution.

    Fields:
        equation_error: E (L u - f)^2 over all x, without noise.
        solution_error: E (u - true solution)^2 over all x.
    """

    equation_error: Scalar
    solution_error: Scalar


class EquationCurve(Result):
    """Errors of an estimate of the solution, averaged over random points.

    Fields:
        equation_error: E (L u - f)^2 over all x, without noise; infinite if there is no ridge and
            the number of points equals the number of modes.
        solution_error: E (u - true solution)^2 over all x; infinite in the same case.
        threshold: kappa; a mode of the operator kernel with this eigenvalue is half learned.
        residual: relative error of the equation for kappa.
        converged: whether the equation was solved.
    """

    equation_error: Scalar
    solution_error: Scalar
    threshold: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


@theory
def equation_learning_curve(system: EquationRegression) -> EquationCurve:
    r"""Errors of the solution of a differential equation whose right-hand side is known at random
    points.

    The estimate of $L u$ is regression with the operator kernel $L_x L_{x'} K(x, x')$. The
    eigenvalues of this kernel are $h_k = |\ell_k|^2 \lambda_k$ with the multiplier $\ell_k$ of the
    operator. Let $\kappa$ be the solution of $n = T/\kappa + \sum_k h_k/(h_k + \kappa)$. With the
    learnabilities $A_k = h_k/(h_k + \kappa)$ and the power $f_k^2 = |\ell_k|^2 u_k^2$ of the
    right-hand side,

    $$ E = \frac{\sum_k (1 - A_k)^2 f_k^2 + \Delta}{1 - \frac1n \sum_k A_k^2}, \qquad
       E\,(L\hat u - f)_k^2 = (1 - A_k)^2 f_k^2 + \frac{A_k^2}{n} E $$

    The error of the equation is the sum over the modes, and that of the solution is the sum with
    weights $1/|\ell_k|^2$. For $\lambda_k \sim k^{-a}$, $u_k^2 \sim k^{-b}$ and an operator of
    order s the first falls as $n^{-(b - 2s - 1)}$ and the second as $n^{-(b - 2s)}$, if there is no
    ridge or noise. The error of the solution falls by one power of n faster than that of the
    equation, and by 2s - 1 powers slower than if values of u itself were known.

    Accuracy: 1e-10 for its equations, which are exact for Gaussian features; waves at random points
    are not Gaussian, and the errors at small ridges differ from the theory by some ten per cent.

    Source: derived here from the learning curve of Simon et al. (2021) for the operator kernel.

    >>> system = EquationRegression([1.0, 0.1, 0.01], [0.0, 1.0, 0.5], n_points=8, ridge=0.1)
    >>> bool(equation_learning_curve(system).converged)
    True
    """
    gain = system.operator.gain(system.wave_numbers)
    power = gain * system.solution_power
    spectrum = Spectrum(gain * system.prior, power, system.multiplicities)
    found = effective_ridge(spectrum, system.n_points, system.ridge)
    missed = (1 - found.learnability) ** 2
    error = ratio(missed @ power + system.noise, found.complement)
    scatter = system.multiplicities * found.learnability**2 * error / system.n_points
    return EquationCurve(
        equation_error=missed @ power + jnp.sum(scatter),
        solution_error=missed @ system.solution_power + jnp.sum(ratio(scatter, gain)),
        threshold=found.threshold,
        residual=found.residual,
        converged=found.converged,
    )


@theory
def equation_on_grid(system: EquationRegression) -> EquationErrors:
    r"""Errors of the solution of a differential equation whose right-hand side is known at
    equidistant points.

    On the circle complex waves whose frequencies are equal modulo n are equal at all n points, up
    to a phase. Such waves form a class. With the sums $\bar h = \sum h_{k'}$ and $\bar f^2 = \sum
    f_{k'}^2$ over the class of a wave k,

    $$ g_k = \frac{h_k}{\bar h + T/n}, \qquad E\,(L\hat u - f)_k^2 = (1 - g_k)^2 f_k^2 + g_k^2
       \Big(\bar f^2 - f_k^2 + \frac{\Delta}{n}\Big) $$

    These errors are averaged over the offset of the points on the circle, and are exact at every n.
    On the interval the points are j/(n + 1), classes are $\pm k$ modulo 2(n + 1), n + 1 takes the
    place of n above, and the average is over the signs of the modes of the true solution; modes
    whose frequency is divisible by n + 1 vanish at all points.

    Accuracy: 1e-12.

    Source: derived here.

    >>> system = EquationRegression([1.0, 0.1, 0.01], [0.0, 1.0, 0.5], n_points=8)
    >>> float(equation_on_grid(system).solution_error) < 1e-12  # all frequencies are told apart
    True
    """
    gain = system.operator.gain(system.wave_numbers)
    if system.domain == "circle":
        frequency = jnp.arange(1 - len(gain), len(gain))  # complex waves
        each, seen = jnp.abs(frequency), jnp.ones(len(frequency))
        points: Any = system.n_points
        place = _classes(frequency, points)
    else:
        each, points = jnp.arange(len(gain)), system.n_points + 1
        folded = jnp.mod(each + 1, 2 * points)
        seen = jnp.where(jnp.mod(folded, points) == 0, 0.0, 1.0)
        place = jnp.where(seen > 0, jnp.minimum(folded, 2 * points - folded), 0).astype(int)
    solution = (system.solution_power / system.multiplicities)[each]
    gain = gain[each]
    kernel, power = gain * system.prior[each] * seen, gain * solution
    learned = ratio(kernel, _of_class(kernel, place) + system.ridge / points)
    others = jnp.maximum(_of_class(power * seen, place) - power * seen, 0.0) + system.noise / points
    scatter = learned**2 * others
    missed = (1 - learned) ** 2
    return EquationErrors(
        equation_error=missed @ power + jnp.sum(scatter),
        solution_error=missed @ solution + jnp.sum(ratio(scatter, gain)),
    )


@theory
def wide_equation_network(system: EquationNetwork) -> EquationErrors:
    r"""Errors of an infinitely wide network that is trained on the residual of an equation.

    The tangent kernel $\Theta$ of the network is a function of the angle between two points of the
    circle, with Fourier coefficients $\theta_k$. The tangent kernel of the residual is the operator
    kernel $L_x L_{x'} \Theta(x, x')$, with coefficients $h_k = |\ell_k|^2 \theta_k$. At equidistant
    points the waves whose frequencies are equal modulo n have the same values. With the complex
    coefficients $u_k$ of the true solution,

    $$ \hat u_k = \frac{1}{\ell_k} \frac{h_k}{\sum_{k'} h_{k'} + T/n} \sum_{k'} \ell_{k'} u_{k'},
       \qquad k' \equiv k \bmod n $$

    `equation_on_grid` is the average of the errors over the offset of the points. `width` is not
    used.

    Accuracy: 1e-8 for smooth activations; 96 frequencies are kept, and the coefficients beyond them
    are smaller than this.

    Source: Wang, Yu, Perdikaris (2022), for the tangent kernel of the residual; errors derived
    here.

    >>> from orderparam.networks.fully_connected import fully_connected
    >>> network = fully_connected(1, None, "erf", bias_variance=1.0)
    >>> found = wide_equation_network(EquationNetwork([0.0, 1.0], [0.0, 0.0], 8, network))
    >>> 0 < float(found.solution_error) < 0.5
    True
    """
    prior = tangent_spectrum(system)
    frequency = jnp.arange(1 - FREQUENCIES, FREQUENCIES)
    multiplier = system.operator.multiplier(frequency)
    gain = jnp.abs(multiplier) ** 2
    half = jnp.zeros(FREQUENCIES, complex)
    half = half.at[: len(system.cosines)].set((system.cosines - 1j * system.sines) / 2)
    half = half.at[0].set(system.cosines[0])
    solution = jnp.concatenate([jnp.conj(half[:0:-1]), half])
    right_hand, kernel = multiplier * solution, gain * prior[jnp.abs(frequency)]
    place = _classes(frequency, system.n_points)
    learned = kernel / (_of_class(kernel, place) + system.ridge / system.n_points)
    estimate = learned * _of_class(right_hand, place)
    # the estimate of a mode that the operator maps to 0 is 0
    safe = jnp.where(gain > 0, multiplier, 1.0)
    missed = jnp.where(gain > 0, estimate / safe, 0.0) - solution
    return EquationErrors(
        equation_error=jnp.sum(jnp.abs(estimate - right_hand) ** 2),
        solution_error=jnp.sum(jnp.abs(missed) ** 2),
    )


def tangent_spectrum(system: EquationNetwork) -> Float[Array, "frequency"]:
    """Fourier coefficients of the tangent kernel on the circle."""
    angles = 2 * jnp.pi * jnp.arange(SAMPLES) / SAMPLES
    kernel = system.architecture.kernel(circle(angles), circle(angles[:1])).ntk[:, 0]
    return jnp.maximum(jnp.real(jnp.fft.rfft(kernel))[:FREQUENCIES] / SAMPLES, 0.0)


def _classes(frequency: Array, points: Any) -> Array:
    """The number of the class of every complex wave; waves of one class are equal at the points."""
    alone = points >= len(frequency)
    return jnp.where(alone, frequency - frequency[0], jnp.mod(frequency, points)).astype(int)


def _of_class(values: Array, place: Array) -> Array:
    """Sum of the values over the class of each wave."""
    return jax.ops.segment_sum(values, place, len(values) + 1)[place]
