"""The width with the lowest risk at a given compute, and the exponents of this width and risk."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.system import System, parameter
from orderparam.core.verb import experiment, theory
from orderparam.kernels.spectra import power_law_levels
from orderparam.systems.scaling_laws.one_pass.experiment import drawn_features
from orderparam.systems.scaling_laws.one_pass.model import PowerLawFeatures
from orderparam.systems.scaling_laws.one_pass.theory import EARLY, late_risk, limits

# ------------------------------------------------------------------------------------------------
# Exponents of the lowest risk at a given compute everywhere in the plane (alpha, beta), from the
# deterministic risk itself.

_NARROWEST = 6.0
_SCAN = 16
_NEAR = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
_FINER = np.array([1.0, 0.25, 0.0625])  # distance of outer widths in each round, in scan steps


class ComputeFrontier(System):
    r"""Compute $f = d t$ of one-pass SGD with batches of one sample and $v$ = `inputs_per_feature`
    $d$ inputs.

    The learning rate is `share` / $\sum_j \lambda_j$, which falls as $d^{2\alpha - 1}$ where
    $\alpha < 1/2$.

    Raises:
        ValueError: unless 2 (alpha + beta) > 1; otherwise the risk is no power law.
    """

    compute: float = parameter("number f of multiplications by features", minimum=1e4)
    spectral_exponent: float = parameter(
        "alpha: eigenvalue j of the inputs is j^(-2 alpha)", above=0, default=1.0
    )
    target_exponent: float = parameter(
        "beta: coefficient j of the target is j^(-beta)", default=0.3
    )
    inputs_per_feature: float = parameter("inputs over features v/d", minimum=1, default=4.0)
    share: float = parameter(
        "learning rate times the summed eigenvalues of the inputs", above=0, default=0.5
    )

    def __check_init__(self) -> None:
        numbers = (self.spectral_exponent, self.target_exponent)
        if any(isinstance(number, jax.core.Tracer) for number in numbers):
            return
        alpha, beta = (np.asarray(number) for number in numbers)
        if np.any(2 * (alpha + beta) <= 1):
            raise ValueError(
                f"ComputeFrontier.target_exponent = {beta}: must be > 1/2 - spectral_exponent"
            )


class FrontierExponents(Result):
    """Best width and lowest risk at compute f, with their slopes over the decade around f.

    Fields:
        width: best width d*.
        risk: lowest risk R*.
        width_exponent: d ln d* / d ln f.
        risk_exponent: -d ln R* / d ln f.
        converged: whether all minima lie inside the widths that were tried, at stable learning
            rates.
    """

    width: Float[Array, ""]
    risk: Float[Array, ""]
    width_exponent: Float[Array, ""]
    risk_exponent: Float[Array, ""]
    converged: Bool[Array, ""]


@theory(differentiable=False)
def frontier_exponents(system: ComputeFrontier) -> FrontierExponents:
    r"""Width with the lowest risk at a given compute, and exponents of width and risk, in every
    phase.

    $$ R^*(f) = \min_d R(t = f/d;\, d) , \qquad
       \text{width\_exponent} = \frac{d \ln d^*}{d \ln f} , \qquad
       \text{risk\_exponent} = -\frac{d \ln R^*}{d \ln f} , $$

    with $R$ of `deterministic_risk` at $10^{-1/2} f$, $f$ and $10^{1/2} f$. A scan over the widths
    with at least 30 steps is followed by three rounds in which the quartic polynomial through $\ln
    R$ at five values of $\ln d$ is minimised; the values lie four times closer in each round. The
    number of inputs is treated as a real number, for which sums over inputs are interpolated
    between whole numbers. `compute_optimal` answers the same question for infinitely many inputs
    and a given learning rate.

    Accuracy: 1e-4 for the width and its exponent, 1e-6 for the risk.

    Cost: some 100 evaluations of the risk.

    Source: Paquette, Paquette, Xiao, Pennington (2024) for the exponents; the risk is derived here.

    >>> found = frontier_exponents(ComputeFrontier(1e6))
    >>> round(float(found.width), 1), round(float(found.risk_exponent), 3)
    (239.4, 0.523)
    """
    alpha, power = system.spectral_exponent, 2 * (system.spectral_exponent + system.target_exponent)

    def log_risk(log_width: Float[Array, ""], compute: Float[Array, ""]) -> Float[Array, ""]:
        width = jnp.exp(log_width)
        spectrum = power_law_levels(2 * alpha, power, system.inputs_per_feature * width)
        rate = system.share / spectrum.total
        risk = late_risk(spectrum, width, rate, 1.0, compute / width)
        return jnp.where(limits(spectrum, width, rate, 1.0)[2], jnp.log(risk), jnp.inf)

    def lowest(
        compute: Float[Array, ""],
    ) -> tuple[Float[Array, ""], Float[Array, ""], Bool[Array, ""]]:
        widths = jnp.linspace(jnp.log(_NARROWEST), jnp.log(compute / EARLY), _SCAN)
        best = jnp.argmin(jax.lax.map(lambda u: log_risk(u, compute), widths))
        inside = (best > 0) & (best < _SCAN - 1)

        def nearer(
            centre: Float[Array, ""], reach: Float[Array, ""]
        ) -> tuple[Float[Array, ""], Float[Array, ""]]:
            values = jax.lax.map(lambda u: log_risk(u, compute), centre + reach * _NEAR)
            quartic = jnp.linalg.solve(jnp.vander(jnp.asarray(_NEAR)), values)
            turning = jnp.roots(jnp.polyder(quartic), strip_zeros=False).real
            places = jnp.clip(jnp.concatenate([turning, jnp.array([-1.0, 1.0])]), -1.0, 1.0)
            here = jnp.polyval(quartic, places)
            return centre + reach * places[jnp.argmin(here)], jnp.min(here)

        start = widths[jnp.clip(best, 1, _SCAN - 2)]
        place, lowest_risk = jax.lax.scan(nearer, start, (widths[1] - widths[0]) * _FINER)
        return place, lowest_risk[-1], inside & jnp.isfinite(lowest_risk[-1])

    width, risk, found = jax.lax.map(lowest, system.compute * 10.0 ** jnp.array([-0.5, 0.0, 0.5]))
    return FrontierExponents(
        width=jnp.exp(width[1]),
        risk=jnp.exp(risk[1]),
        width_exponent=(width[2] - width[0]) / jnp.log(10.0),
        risk_exponent=-(risk[2] - risk[0]) / jnp.log(10.0),
        converged=jnp.all(found),
    )


_WIDTHS_TRIED = 24
_STEPS = 12
_FLAT = 1e-6  # a slope |d ln R / d ln d| below this counts as zero
_LEAST_WIDTH = 2.0  # half of the smallest width that may be the best one


class ComputeExponents(NamedTuple):
    """Exponents of the compute-optimal width d* ~ f^width and risk R* ~ f^-risk.

    Fields:
        phase: name of the phase in the plane (alpha, beta).
        width: exponent of the width.
        risk: exponent of the risk.
    """

    phase: str
    width: float
    risk: float


def compute_exponents(spectral_exponent: float, target_exponent: float) -> ComputeExponents:
    r"""Limiting exponents of the compute-optimal width and risk, and the phase they belong to.

    The exponents follow from the balance of four terms of the risk at $r = t$ steps: the part of
    the target that $d$ features cannot represent, the part that is not yet learned, its distortion
    by the features, and the noise of SGD,

    $$ d^{-2\alpha + \max(0, 1 - 2\beta)} , \quad
       (\gamma B r)^{-(2\alpha + 2\beta - 1)/(2\alpha)} , \quad
       \frac{(\gamma B r)^{-1 + 1/(2\alpha)}}{d} , \quad
       \gamma (\gamma B r)^{-2 + 1/(2\alpha)} . $$

    For $\alpha < 1/2$ the learning rate falls as $d^{2\alpha - 1}$ with v/d fixed.

    Args:
        spectral_exponent: alpha > 0, eigenvalue j of the inputs is j^(-2 alpha).
        target_exponent: beta, coefficient j of the target is j^(-beta).

    Raises:
        ValueError: where 2 (alpha + beta) <= 1, so that there is no power law.

    Source: Paquette, Paquette, Xiao, Pennington (2024), table 2.

    >>> compute_exponents(1.0, 0.7)
    ComputeExponents(phase='II', width=0.4117647058823529, risk=0.7058823529411765)
    """
    a, b = spectral_exponent, target_exponent
    if not (a > 0 and 2 * (a + b) > 1):
        raise ValueError(
            f"spectral_exponent = {a}, target_exponent = {b}: no power law unless alpha > 0 and 2 "
            "(alpha + beta) > 1"
        )
    if a > 0.5:
        if b <= 0.5:
            return ComputeExponents("Ia", 1 / (2 * a + 1), (2 * a + 2 * b - 1) / (2 * a + 1))
        if b <= a:
            return ComputeExponents("II", b / (a + b), (2 * a + 2 * b - 1) / (2 * (a + b)))
        return ComputeExponents("III", 0.5, 1 - 1 / (4 * a))
    if b <= 0.5:
        return ComputeExponents("Ib", 0.5, a + b - 0.5)
    if a > 1 - 0.5**0.5:
        return ComputeExponents("IVa", 0.5, a)
    if a > 0.25:
        denominator = 2 * a * b + a - 2 * b
        return ComputeExponents(
            "IVb", (a - b) / denominator, abs((1 - 2 * a) * (2 * a + 2 * b - 1) / (2 * denominator))
        )
    # Ic: the unlearned target equals the part that the features cannot represent at r = d^growth.
    growth = 4 * a**2 / (2 * a + 2 * b - 1) + 1 - 2 * a
    return ComputeExponents("Ic", 1 / (1 + growth), 2 * a / (1 + growth))


class ComputeBudget(System):
    """Compute f = d B t of one-pass SGD with random features of infinitely many inputs
    (`PowerLawFeatures`, alpha > 1/2).
    """

    compute: float = parameter("number f of multiplications by features", minimum=1e3)
    spectral_exponent: float = parameter(
        "alpha: eigenvalue j of the inputs is j^(-2 alpha)", above=0.5, default=1.0
    )
    target_exponent: float = parameter(
        "beta: coefficient j of the target is j^(-beta)", above=0, default=0.3
    )
    learning_rate: float = parameter(
        "learning rate gamma beside the summed gradient of a batch", above=0, default=0.3
    )
    batch_size: float = parameter("samples B of a step", minimum=1, integer=True, default=1)


class ComputeOptimal(Result):
    """Width and number of steps with the lowest risk at compute f, as real numbers.

    Fields:
        width: best width d*.
        steps: number of steps f / (d* B).
        risk: lowest risk R*.
        width_exponent: d ln d* / d ln f at this compute.
        risk_exponent: -d ln R* / d ln f at this compute.
        residual: |d ln R / d ln d| at d*.
        converged: whether there is a minimum with at least two features and at least 30 steps, at a
            stable learning rate.
    """

    width: Float[Array, ""]
    steps: Float[Array, ""]
    risk: Float[Array, ""]
    width_exponent: Float[Array, ""]
    risk_exponent: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory(differentiable=False)
def compute_optimal(system: ComputeBudget) -> ComputeOptimal:
    r"""Width and number of steps with the lowest risk at a given number of multiplications.

    $$ R^*(f) = \min_d R\Big( t = \frac{f}{d B};\, d \Big) $$

    with $f$ = `compute`, $B$ = `batch_size` and $R$ of `deterministic_risk` for infinitely many
    inputs. A scan over $d$ is followed by a search for the root of $d \ln R / d \ln d$ by false
    position (twelve steps of the Illinois rule); exponents follow from implicit differentiation.

    Accuracy: 1e-7 for the width and 1e-6 for the exponents. `residual` is limited by rounding, to
    1e-9 and, for f > 1e8, to 1e-6.

    Source: Paquette, Paquette, Xiao, Pennington (2024) for the question; the risk is derived here.

    >>> best = compute_optimal(ComputeBudget(1e6, 1.0, 0.3))
    >>> round(float(best.width), 2), round(float(best.risk_exponent), 4)
    (253.02, 0.5229)
    """
    alpha, rate, batch = system.spectral_exponent, system.learning_rate, system.batch_size
    spectrum = power_law_levels(2 * alpha, 2 * (alpha + system.target_exponent), jnp.inf)
    budget = jnp.log(system.compute)

    def log_risk(log_width: Float[Array, ""], log_compute: Float[Array, ""]) -> Float[Array, ""]:
        step = jnp.exp(log_compute - log_width) / batch
        return jnp.log(late_risk(spectrum, jnp.exp(log_width), rate, batch, step))

    def slope(log_width: Float[Array, ""], log_compute: Float[Array, ""]) -> Float[Array, ""]:
        return jax.jvp(lambda u: log_risk(u, log_compute), (log_width,), (jnp.ones(()),))[1]

    def masked(log_width: Float[Array, ""]) -> Float[Array, ""]:
        value = log_risk(log_width, budget)
        return jnp.where(
            limits(spectrum, jnp.exp(log_width), rate, batch)[2] & jnp.isfinite(value),
            value,
            jnp.inf,
        )

    def nearer(_: Array, state: tuple) -> tuple:
        """The two ends, the slopes at them, and the newest point. The slope of an end that is kept
        a second time is halved (Illinois rule)."""
        ends, slopes, newest = state
        chord = slopes[1] - slopes[0]
        place = jnp.where(chord > 0, (ends[0] * slopes[1] - ends[1] * slopes[0]) / chord, newest)
        here = slope(place, budget)
        moved = jnp.array([here <= 0, here > 0])
        stays = jnp.where(moved[::-1] & (newest == ends[::-1]), slopes / 2, slopes)
        return jnp.where(moved, place, ends), jnp.where(moved, here, stays), place

    widest = jnp.maximum(budget - jnp.log(EARLY * batch), jnp.log(2 * _LEAST_WIDTH))
    grid = jnp.linspace(jnp.log(_LEAST_WIDTH), widest, _WIDTHS_TRIED)
    values = jax.lax.map(masked, grid)
    best = jnp.argmin(values)
    inside = (
        (best > 0) & (best < _WIDTHS_TRIED - 1) & jnp.isfinite(values[jnp.maximum(best - 1, 0)])
    )
    ends = grid[jnp.clip(jnp.stack([best - 1, best + 1]), 0, _WIDTHS_TRIED - 1)]
    # The first step goes to the middle of the bracket: the slopes at its ends are not needed.
    first = ends, jnp.array([-1.0, 1.0]), grid[best]
    place = jnp.where(inside, jax.lax.fori_loop(0, _STEPS, nearer, first)[2], grid[best])

    def derivatives(
        log_width: Float[Array, ""], log_compute: Float[Array, ""]
    ) -> tuple[Array, tuple[Array, Array, Array]]:
        value, fall = jax.jvp(lambda f: log_risk(log_width, f), (log_compute,), (jnp.ones(()),))
        bend = slope(log_width, log_compute)
        return bend, (value, fall, bend)

    (along_width, along_compute), (value, fall, bend) = jax.jacfwd(
        derivatives, (0, 1), has_aux=True
    )(place, budget)
    width = jnp.exp(place)
    return ComputeOptimal(
        width=width,
        steps=system.compute / (width * batch),
        risk=jnp.exp(value),
        width_exponent=-along_compute / along_width,
        risk_exponent=-fall,
        residual=jnp.abs(bend),
        converged=inside & (jnp.abs(bend) < _FLAT) & jnp.isfinite(value),
    )


class MeasuredOptimum(Result):
    """Width and number of steps with the lowest measured risk.

    Fields:
        width: best width.
        steps: number of steps f / (d B), a real number.
        risk: lowest risk.
    """

    width: Float[Array, ""]
    steps: Float[Array, ""]
    risk: Float[Array, ""]


@experiment
def measured_optimum(
    system: ComputeBudget,
    key: PRNGKeyArray,
    *,
    widths: int = 5,
    span: float = 2.5,
    draws: int = 4,
    inputs: int = 8,
) -> MeasuredOptimum:
    r"""Width with the lowest risk of drawn features at a given compute.

    `widths` widths are tried, from 1/`span` to `span` times that of `compute_optimal`. The risk at
    each is the mean of `draws` draws of the features, exact over samples (`drawn_features`), at the
    whole number of steps closest to $f/(dB)$. The minimum is that of a cubic polynomial fitted to
    $\ln R$ as a function of $\ln d$.

    Args:
        widths: number of widths, at least 4; 5 by default.
        span: ratio of the largest width to the width that is optimal in theory, above 1; 2.5 by
            default.
        draws: draws of the features that are averaged at each width; 4 by default. With a single
            draw the minimum fluctuates strongly between draws.
        inputs: number of inputs per feature; 8 by default.

    Cost: `widths` * `draws` eigendecompositions of d x d matrices.

    Source: Paquette, Paquette, Xiao, Pennington (2024); the estimate is derived here.

    >>> run = measured_optimum(ComputeBudget(2e3, 1.0, 0.3), jax.random.key(0), draws=1, inputs=2)
    >>> bool(run.width > 0)
    True
    """
    centre = float(compute_optimal(system).width)
    tried = np.unique(np.round(centre * np.geomspace(1 / span, span, widths))).astype(int)
    log_risk = []
    for number, width in enumerate(tried):
        step = max(1.0, round(float(system.compute) / (width * float(system.batch_size))))
        features = PowerLawFeatures(
            system.spectral_exponent,
            system.target_exponent,
            inputs * width,
            width=width,
            learning_rate=system.learning_rate,
            batch_size=system.batch_size,
            horizon=step,
            records=1,
        )
        keys = jax.random.split(jax.random.fold_in(key, number), draws)
        log_risk.append(
            np.log(np.mean([float(drawn_features(features, one).risk[0]) for one in keys]))
        )
    x = np.log(tried / centre)
    cubic = np.polynomial.Polynomial.fit(x, log_risk, 3)
    turning = [
        float(root.real)
        for root in cubic.deriv().roots()
        if abs(root.imag) < 1e-9 and x[0] <= root.real <= x[-1]
    ]
    lowest = min([*turning, float(x[0]), float(x[-1])], key=lambda place: float(cubic(place)))
    width = centre * np.exp(lowest)
    steps = float(system.compute) / (width * float(system.batch_size))
    return MeasuredOptimum(
        width=jnp.asarray(width), steps=jnp.asarray(steps), risk=jnp.asarray(np.exp(cubic(lowest)))
    )
