"""The change of the learning curve by a loss that is not quadratic. A term d^(2p) of the loss has a
scaling dimension, which is the exponent of its correction.
"""

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment, theory
from orderparam.systems.renormalization.wilsonian.experiment import (
    SampledModes,
    resolved,
    sampled_modes,
    sampled_regression,
)
from orderparam.systems.renormalization.wilsonian.model import EvenLoss, InteractingRegression
from orderparam.systems.renormalization.wilsonian.theory import Gap, gap_equation

_SQUARE = EvenLoss("z**2")


@dataclass(frozen=True)
class HuberLoss(EvenLoss):
    """Huber's loss: z^2 where |z| < 1, and 2|z| - 1 beyond. Its averages are given in closed form,
    because its second derivative jumps and quadrature would be inaccurate.

    >>> round(float(HuberLoss().stiffness(jnp.asarray(0.25))), 6)
    0.9545
    """

    formula: str = "huber"

    def __call__(self, deviation: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        size = jnp.abs(deviation)
        return jnp.where(size < 1, deviation**2, 2 * size - 1)

    def stiffness(self, squared_deviation: Float[Array, ""]) -> Float[Array, ""]:
        """The probability that |sqrt(Q) z| < 1."""
        return jax.scipy.special.erf(1 / jnp.sqrt(2 * squared_deviation))

    def average(self, squared_deviation: Float[Array, ""]) -> Float[Array, ""]:
        q = squared_deviation
        edge = 1 / jnp.sqrt(q)
        inside = jax.scipy.special.erf(edge / jnp.sqrt(2))
        density = jnp.exp(-(edge**2) / 2) / jnp.sqrt(2 * jnp.pi)
        return q * (inside - 2 * edge * density) + 4 * jnp.sqrt(q) * density - (1 - inside)

    def second(self, deviation: Float[Array, "point"]) -> Float[Array, "point"]:
        return jnp.where(jnp.abs(deviation) < 1, 2.0, 0.0)


class LossCorrection(Result):
    """The error of one loss relative to that of the square loss.

    Fields:
        correction: Q / Q_0 - 1.
        squared_deviation: Q, the mean squared deviation <(f - y)^2> with this loss.
        square_deviation: Q_0, the mean squared deviation with the square loss.
        converged: whether both deviations were found.
    """

    correction: Float[Array, ""]
    squared_deviation: Float[Array, ""]
    square_deviation: Float[Array, ""]
    converged: Bool[Array, ""]


def _of(one: Gap | SampledModes, square: Gap | SampledModes) -> LossCorrection:
    return LossCorrection(
        correction=one.squared_deviation / square.squared_deviation - 1,
        squared_deviation=one.squared_deviation,
        square_deviation=square.squared_deviation,
        converged=one.converged & square.converged,
    )


def _squared(system: InteractingRegression) -> InteractingRegression:
    """The regression of the same examples with the square loss."""
    return system.with_(loss=_SQUARE, quartic=0.0)


@theory
def loss_correction(system: InteractingRegression) -> LossCorrection:
    r"""Relative change of the squared deviation by a loss that is not quadratic.

    With the gap equation $m = \frac\rho2 E\, \ell''(\sqrt Q z)$ a term $u\, d^{2p}$ of the loss
    gives

    $$ \frac m\rho - 1 = u\, p\, (2p - 1)!!\, Q^{p-1} . $$

    Because $Q \sim \rho^{-s}$ with $s = \min(\alpha, \beta)/(1 + \alpha)$ for power laws
    $\lambda_k = k^{-(1 + \alpha)}$ and $y_k^2 = k^{-(1 + \beta)}$, the correction falls as

    $$ \frac{Q}{Q_0} - 1 \sim \rho^{-(p - 1) s} : $$

    the dimensions of operators add. The leading correction of a smooth loss comes from its first
    even term beyond the square. Huber's loss has no such term, and its correction is exponentially
    small in $1/Q$.

    Accuracy: 1e-10.

    Source: derived here, in the setting of Coppola, Helias, Ringel (2025).

    >>> from orderparam.kernels import Spectrum
    >>> k = jnp.arange(1.0, 1001)
    >>> system = InteractingRegression(Spectrum(k**-2, k**-2), 100.0, 1.0, quartic=0.01)
    >>> round(float(loss_correction(system).correction), 4)
    -0.0067
    """
    return _of(gap_equation(system), gap_equation(_squared(system)))


@experiment(check=resolved)
def measured_loss_correction(
    system: InteractingRegression,
    key: PRNGKeyArray,
    *,
    examples: Literal["drawn", "averaged"] = "drawn",
    chains: int = 8,
    warmup: int = 200,
    samples: int = 300,
) -> LossCorrection:
    """The change of the squared deviation by the loss.

    The posteriors of both losses are sampled with the same random numbers, so that most of their
    scatter cancels.

    Args:
        examples: "drawn" (the default) samples the posterior of one training set
            (`sampled_regression`). "averaged" samples the posterior with the loss averaged over
            inputs (`sampled_modes`), which is the limit of a high temperature at fixed P/T.
        chains: number of Markov chains; 8 by default.
        warmup: steps of each chain before it is recorded; 200 by default.
        samples: recorded steps of each chain; 300 by default.

    Raises:
        ValueError: for a spectrum with several modes in a level, or with a tail.

    Accuracy: that of `sampled_regression` and `sampled_modes`.

    Source: derived here, in the setting of Coppola, Helias, Ringel (2025).

    >>> from orderparam.kernels import Spectrum
    >>> k = jnp.arange(1.0, 11)
    >>> system = InteractingRegression(Spectrum(k**-2, k**-2), 20, 1.0, quartic=0.5)
    >>> run = measured_loss_correction(system, jax.random.key(0), chains=2, warmup=20, samples=20)
    >>> bool(run.correction < 0)
    True
    """
    sampled = sampled_regression if examples == "drawn" else sampled_modes
    both = (
        sampled(one, key, chains=chains, warmup=warmup, samples=samples)
        for one in (system, _squared(system))
    )
    return _of(*both)
