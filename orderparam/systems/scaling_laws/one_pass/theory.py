"""Risk of one-pass SGD with random features at large width after any number of steps, without
drawing features or samples.

For given features, the mean over samples obeys c_j(t+1) = h_j c_j(t) + gamma^2 B s_j R(t), with s_j
the eigenvalues of K = W^T D W, h = 1 - 2 gamma B s + gamma^2 B (B + 1) s^2 and R = R_0 + sum_j s_j
c_j (Paquette, Paquette, Xiao, Pennington 2024). The generating function sum_t R(t) e^(-p t) depends
on the features only through two resolvents of K, at the two roots s_1, s_2 of e^p = h(s). The
resolvents concentrate at large width, and inverting the transform gives R(t). The closed generating
function and its inversion are derived here.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Complex, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.kernels.spectrum import Spectrum
from orderparam.solve.root import decreasing_root
from orderparam.systems.scaling_laws.one_pass.model import OnePassFeatures

# ------------------------------------------------------------------------------------------------
# The resolvent of the covariance of random features at large width, from the spectrum of the
# inputs.
#
# K = W^T D W with D = diag(lambda) and W of shape (v, d) with entries N(0, 1/d). In terms of a new
# variable w in place of z,
#
#     z(w) = w m(w),    m(w) = 1 - (1/d) sum_j lambda_j / (lambda_j - w)
#
# (Silverstein and Bai 1995), so that for any z off the spectrum
#
#     tr (K - z)^-1 = -d m / z,
#     b D^(1/2) (D^(1/2) W W^T D^(1/2) - z)^-1 D^(1/2) b
#         = (1/m) sum_j lambda_j b_j^2 / (lambda_j - w).

_FAR = 1e6  # for |z| above this, in units of the largest eigenvalue, w = z to working precision
_STAGES = 24
_NEWTON = 3
_POLISH = 2  # Newton steps that are differentiated: derivatives up to the third are exact

Number = Complex[Array, ""] | Float[Array, ""]


def ratio(spectrum: Spectrum, width: Float[Array, ""] | float, w: Number) -> Number:
    """m(w) = z(w) / w."""
    learned = (
        jnp.sum(spectrum.multiplicities * spectrum.eigenvalues / (spectrum.eigenvalues - w))
        - spectrum.tail / w
    )
    return 1 - learned / width


def target_resolvent(spectrum: Spectrum, w: Number, m: Number) -> Number:
    """The resolvent between the target's coefficients, sum_j lambda_j b_j^2 / (lambda_j m - z)."""
    return (
        jnp.sum(spectrum.target_power / (spectrum.eigenvalues - w)) - spectrum.tail_power / w
    ) / m


def companion(
    spectrum: Spectrum, width: Float[Array, ""] | float, z: Complex[Array, ""]
) -> Complex[Array, ""]:
    """The w that belongs to a complex z, found by Newton steps that follow it from infinity along
    the ray to z.
    """

    def slope(w: Number) -> Number:
        return (
            1
            - jnp.sum(
                spectrum.multiplicities * (spectrum.eigenvalues / (spectrum.eigenvalues - w)) ** 2
            )
            / width
        )

    def newton(w: Number, z: Number) -> Number:
        return w - (w * ratio(spectrum, width, w) - z) / slope(w)

    fixed = lax.stop_gradient((z, spectrum.total / width + jnp.max(spectrum.eigenvalues)))
    start = jnp.log(jnp.maximum(_FAR * fixed[1] / jnp.abs(fixed[0]), 1.0))

    def nearer(stage: Array, w: Number) -> Number:
        before, here = (
            fixed[0] * jnp.exp(start * (1 - (stage + moved) / _STAGES)) for moved in (0, 1)
        )
        # predict w along the tangent of log w as a function of log z
        w = w * jnp.exp(-start / _STAGES * before / (w * slope(w)))
        return lax.fori_loop(0, _NEWTON, lambda _, w: newton(w, here), w)

    w = lax.stop_gradient(lax.fori_loop(0, _STAGES, nearer, fixed[0] * jnp.exp(start)))
    for _ in range(_POLISH):
        w = newton(w, z)
    return w


def upper_edge(
    spectrum: Spectrum, width: Float[Array, ""] | float
) -> tuple[Float[Array, ""], Float[Array, ""], Bool[Array, ""]]:
    """The values (w, z, solved) at the upper edge of the spectrum of K, which is the minimum of
    z(w) above the largest eigenvalue.
    """
    largest = jnp.max(spectrum.eigenvalues)

    def excess(log_gap: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, width = args
        w = jnp.max(spectrum.eigenvalues) + jnp.exp(log_gap)
        return (
            jnp.sum(
                spectrum.multiplicities * (spectrum.eigenvalues / (w - spectrum.eigenvalues)) ** 2
            )
            / width
            - 1
        )

    square = jnp.sum(spectrum.multiplicities * spectrum.eigenvalues**2) / width
    at_top = (
        jnp.sum(jnp.where(spectrum.eigenvalues == largest, spectrum.multiplicities, 0.0))
        * largest**2
        / width
    )
    root = decreasing_root(
        excess, jnp.log(at_top) / 2 - 1e-6, jnp.log(square) / 2 + 1e-6, (spectrum, width)
    )
    w = largest + jnp.exp(root.value)
    return w, w * ratio(spectrum, width, w), root.converged


def above_edge(
    spectrum: Spectrum,
    width: Float[Array, ""] | float,
    z: Float[Array, ""] | float,
    edge: Float[Array, ""],
) -> Float[Array, ""]:
    """The w > edge that belongs to a real z above the spectrum, or the edge if no such w exists."""

    def excess(log_gap: Float[Array, ""], args: tuple) -> Float[Array, ""]:
        spectrum, width, z, edge = args
        w = edge + jnp.exp(log_gap)
        return z - w * ratio(spectrum, width, w)

    widest = jnp.log(jnp.maximum(z + 2 * spectrum.total / width, edge) + edge)
    root = decreasing_root(excess, jnp.log(edge) - 30.0, widest, (spectrum, width, z, edge))
    return edge + jnp.where(root.converged, jnp.exp(root.value), 0.0)


Scalar = Float[Array, ""] | float

# At early steps, R(t) is a coefficient of the power series, computed by the trapezoidal rule on a
# circle: accurate to 1e-12 for t < EARLY.
EARLY = 30.0
_CIRCLE = 256
_SHRINK = 1e-13  # radius^_CIRCLE: the share of R(t + _CIRCLE) that the rule adds to R(t)
# At late steps, R(t) is an inverse Laplace transform along the cotangent contour (Weideman 2006).
_TALBOT = 24


class OnePassRisk(Result):
    """Population risk of one-pass SGD at the recorded steps.

    Fields:
        step: number t of the step.
        risk: R(t) = E (f - y)^2 (no factor 1/2); NaN where the learning rate is unstable.
        compute: d B t, number of multiplications by features.
        irreducible_risk: R_0, risk of the best predictor with these features.
        limit_risk: R(t -> infinity) = irreducible_risk / (1 - noise), which the noise of SGD
            maintains.
        noise: zeta = (gamma/2) sum_j s_j / (1 - gamma (B + 1) s_j / 2), the amplification of the
            risk by the noise of fresh samples; below 1 where SGD is stable.
        converged: whether the learning rate is stable (noise < 1, gamma (B + 1) s_max < 2) and all
            equations were solved.
    """

    step: Float[Array, "time"]
    risk: Float[Array, "time"]
    compute: Float[Array, "time"]
    irreducible_risk: Float[Array, ""]
    limit_risk: Float[Array, ""]
    noise: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def deterministic_risk(system: OnePassFeatures) -> OnePassRisk:
    r"""Risk of one-pass SGD with random features at large width, averaged over samples and
    features.

    With the eigenvalues $s_j$ of $K = W^T D W$, $D = \mathrm{diag}(\lambda)$, the mean square $c_j$
    of the weights' distance from the best ones obeys

    $$ c_j(t + 1) = h(s_j)\, c_j(t) + \gamma^2 B s_j R(t) , \qquad
       h(s) = 1 - 2 \gamma B s + \gamma^2 B (B + 1) s^2 , \qquad R = R_0 + \sum_j s_j c_j $$

    with $\gamma$ = `learning_rate` and $B$ = `batch_size`. The sum $\sum_t R(t) e^{-pt}$ needs the
    resolvents of $K$ at the two roots of $h(s) = e^p$, which are known at large width:

    $$ z = w\, m(w) , \qquad m(w) = 1 - \frac1d \sum_j \frac{\lambda_j}{\lambda_j - w} , \qquad
       \mathrm{tr}\,(K - z)^{-1} = -\frac{d\, m}{z} . $$

    Accuracy: relative error of the inversion below 1e-8; the mean over features is exact for large
    d, up to terms of O(1/d).

    Source: Paquette, Paquette, Xiao, Pennington (2024) for the recursion; Silverstein, Bai (1995)
    for the resolvent; the generating function and its inversion are derived here.

    >>> from orderparam.systems.scaling_laws import PowerLawFeatures
    >>> system = PowerLawFeatures(
    ...     1.0, 0.3, 400, width=100, learning_rate=0.3, horizon=100, records=2
    ... )
    >>> np.round(deterministic_risk(system).risk, 5)
    Array([0.99057, 0.04122], dtype=float64)
    """
    steps = system.steps
    features = (system.spectrum, system.width, system.learning_rate, system.batch_size)
    irreducible, noise, stable = limits(*features)
    risk = jax.vmap(lambda step: risk_at(*features, step))(steps)
    return OnePassRisk(
        step=steps,
        risk=jnp.where(stable, risk, jnp.nan),
        compute=system.width * system.batch_size * steps,
        irreducible_risk=irreducible,
        limit_risk=jnp.where(stable, irreducible / (1 - noise), jnp.nan),
        noise=noise,
        converged=stable & jnp.all(jnp.isfinite(risk)),
    )


def limits(
    spectrum: Spectrum, width: Scalar, rate: Scalar, batch: Scalar
) -> tuple[Array, Array, Bool[Array, ""]]:
    """Irreducible risk, amplification zeta by noise, and whether the learning rate is stable."""
    solved = effective_ridge(spectrum, width, 0.0)
    unlearned = spectrum.target_power @ (1 - solved.learnability) + spectrum.tail_power
    edge, top, found = upper_edge(spectrum, width)
    largest = 2 / (rate * (batch + 1))
    below = found & (largest > top)
    w = above_edge(spectrum, width, jnp.where(below, largest, 2 * top), edge)
    noise = jnp.where(below, width / (batch + 1) * (ratio(spectrum, width, w) - 1), jnp.inf)
    return unlearned, noise, below & (noise < 1) & solved.converged


def risk_at(
    spectrum: Spectrum, width: Scalar, rate: Scalar, batch: Scalar, step: Scalar
) -> Float[Array, ""]:
    """The risk R at one step t = 0, 1, 2, ..."""
    early = step < EARLY
    # Half of the circle is enough, because the other half gives the complex conjugate.
    points = _SHRINK ** (1 / _CIRCLE) * np.exp(
        2j * np.pi * (np.arange(_CIRCLE // 2) + 0.5) / _CIRCLE
    )
    series = jax.vmap(lambda growth: _transformed(spectrum, width, rate, batch, growth))(
        1 / points - 1
    )
    first = 2 / _CIRCLE * jnp.real(jnp.sum(series * points ** (-jnp.where(early, step, 0.0))))
    return jnp.where(
        early, first, late_risk(spectrum, width, rate, batch, jnp.where(early, EARLY, step))
    )


def late_risk(
    spectrum: Spectrum, width: Scalar, rate: Scalar, batch: Scalar, step: Scalar
) -> Float[Array, ""]:
    """The risk R at a step t >= 30, a smooth function of t.

    What is inverted is the derivative of the transform with respect to p, which is the transform of
    -t R(t). If R falls faster than 1/t, the transform of R itself tends to sum_t R(t) at small p,
    and R(t) at large t would be lost in the rounding error of this sum.
    """
    # Half of the contour is enough, because the other half gives the complex conjugate.
    theta = np.pi * (2 * np.arange(_TALBOT // 2) + 1) / _TALBOT
    contour = _TALBOT * (-0.4814 + 0.6122 * theta / np.tan(0.6407 * theta) + 0.2645j * theta)
    slope = _TALBOT * (
        0.6122 / np.tan(0.6407 * theta)
        - 0.6122 * 0.6407 * theta / np.sin(0.6407 * theta) ** 2
        + 0.2645j
    )

    def derivative(p: Complex[Array, ""]) -> Complex[Array, ""]:
        growth = jnp.expm1(p)
        return jax.jvp(
            lambda growth: _transformed(spectrum, width, rate, batch, growth),
            (growth,),
            (1 + growth,),
        )[1]

    values = jax.vmap(derivative)(jnp.asarray(contour) / step)
    return -2 / (_TALBOT * step**2) * jnp.real(jnp.sum(np.exp(contour) * slope / 1j * values))


def _transformed(
    spectrum: Spectrum, width: Scalar, rate: Scalar, batch: Scalar, growth: Complex[Array, ""]
) -> Complex[Array, ""]:
    """sum_t R(t) e^(-p t) as a function of e^p - 1."""
    curvature = rate**2 * batch * (batch + 1)
    root = jnp.sqrt((rate * batch) ** 2 + curvature * growth)
    # (gamma B)^2 - root^2 = -curvature growth: the small root without cancellation
    roots = jnp.stack([-growth / (rate * batch + root), (rate * batch + root) / curvature])
    w = jax.vmap(lambda z: companion(spectrum, width, z))(roots)
    # The sum in `ratio` would cancel where the roots are small.
    m = roots / w
    f = jax.vmap(lambda w, m: target_resolvent(spectrum, w, m))(w, m)
    k = roots * width * (1 - m)
    difference = (roots[0] - roots[1]) * curvature
    return (
        -(f[0] - f[1])
        / difference
        * (1 + growth)
        / (1 + rate**2 * batch * (k[0] - k[1]) / difference)
    )
