"""Sampled posteriors of regression with a loss that is not quadratic: the posterior of the modes at
large ridge, and posteriors of drawn training sets.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.sampling import sample
from orderparam.sampling.result import FromChains, of_chains
from orderparam.sampling.samples import Samples
from orderparam.systems.renormalization.spectra import single_modes
from orderparam.systems.renormalization.wilsonian.model import (
    EvenLoss,
    InteractingPool,
    InteractingRegression,
)
from orderparam.systems.renormalization.wilsonian.theory import bare_mass, gap_equation

_QUARTER = 1.6  # a quarter of a period: a mode of unit width is then independent of its start


class SampledModes(FromChains):
    """Observables of one sampled posterior.

    Fields:
        squared_deviation: <Q>, with Q = sum_k (f_k - y_k)^2 plus the power of the target that no
            mode can learn.
        test_error: squared error of the posterior mean, without label noise (no factor 1/2).
        fluctuation: posterior variance, squared_deviation minus test_error.
        shift: m_0(<Q>) / rho - 1, the relative change of the mass by the interaction.
        learnability: <f_k> / y_k of every mode; 0 where there is no target.
        mode_mean: <f_k> in the direction of y_k.
        mode_variance: Var f_k of every mode.
    """

    squared_deviation: Float[Array, ""]
    test_error: Float[Array, ""]
    fluctuation: Float[Array, ""]
    shift: Float[Array, ""]
    learnability: Float[Array, "level"]
    mode_mean: Float[Array, "level"]
    mode_variance: Float[Array, "level"]


@experiment(check=single_modes)
def sampled_modes(
    system: InteractingRegression,
    key: PRNGKeyArray,
    *,
    chains: int = 16,
    warmup: int = 200,
    samples: int = 500,
) -> SampledModes:
    r"""Posterior of the modes at large ridge, sampled from the action by Hamiltonian Monte Carlo.

    $$ S[f] = \sum_k \frac{f_k^2}{2 \lambda_k}
       + \frac{\rho}{2} \Big[ E_z\, \ell(\sqrt Q z) + 3 u Q^2 \Big] , \qquad
       Q = \sum_k (f_k - y_k)^2 + \text{const.} $$

    This is the action whose modes the flow integrates out. The modes in the tail of the spectrum
    are too small to be learned, and so many that the sum over them does not fluctuate. They add a
    constant to $Q$.

    Args:
        chains: number of Markov chains; 16 by default.
        warmup: steps of each chain before it is recorded; 200 by default.
        samples: recorded steps of each chain; 500 by default.

    Raises:
        ValueError: for a spectrum with several modes in a level.

    Accuracy: the result differs from `gap_equation` by a relative amount of order one over the
    number of fluctuating modes.

    Source: derived here, in the setting of Coppola, Helias, Ringel (2025).

    >>> from orderparam.kernels import Spectrum
    >>> k = np.arange(1.0, 11)
    >>> system = InteractingRegression(Spectrum(k**-2, k**-2), 100, 1.0, quartic=0.5)
    >>> run = sampled_modes(system, jax.random.key(0), chains=2, warmup=20, samples=20)
    >>> run.mode_mean.shape
    (10,)
    """
    target = jnp.sqrt(system.spectrum.target_power)
    rest = system.spectrum.tail_power + system.spectrum.tail
    numbers = (target, system.spectrum.eigenvalues, system.density, system.quartic, rest)
    return _sampled(
        system,
        key,
        jax.tree_util.Partial(_ModeAction(system.loss), numbers),
        target,
        chains,
        warmup,
        samples,
    )


def resolved(system: InteractingRegression, **_: Any) -> None:
    """Raise `ValueError` unless every mode of the spectrum can be drawn: each has multiplicity 1,
    and no tail is left."""
    single_modes(system)
    if system.spectrum.tail > 0:
        raise ValueError(
            f"{type(system).__name__}.spectrum.tail = {float(system.spectrum.tail):g}: must be 0 "
            "(modes are drawn one by one)"
        )


@experiment(check=resolved)
def sampled_regression(
    system: InteractingRegression,
    key: PRNGKeyArray,
    *,
    chains: int = 8,
    warmup: int = 200,
    samples: int = 300,
) -> SampledModes:
    r"""Posterior of one training set of `n_train` samples, by Hamiltonian Monte Carlo.

    $$ S[f] = \sum_k \frac{f_k^2}{2 \lambda_k}
       + \frac{1}{2T} \sum_{\mu=1}^P \big[ \ell(d_\mu) + u\, d_\mu^4 \big] , \qquad
       d_\mu = f(x_\mu) - y_\mu $$

    The features of a sample are independent standard Gaussians; for an `InteractingPool` they are
    those of points drawn without replacement, and errors are taken over the whole pool.

    Args:
        chains: number of Markov chains; 8 by default.
        warmup: steps of each chain before it is recorded; 200 by default.
        samples: recorded steps of each chain; 300 by default.

    Raises:
        ValueError: for a spectrum with several modes in a level, or with a tail.

    Accuracy: the result differs from the theory of large ridge by a relative amount of order Q*/T.

    Source: derived here, in the setting of Coppola, Helias, Ringel (2025).

    >>> from orderparam.kernels import Spectrum
    >>> k = np.arange(1.0, 11)
    >>> system = InteractingRegression(Spectrum(k**-2, k**-2), 20, 1.0, quartic=0.5)
    >>> run = sampled_regression(system, jax.random.key(0), chains=2, warmup=20, samples=20)
    >>> run.mode_mean.shape
    (10,)
    """
    spectrum, count = system.spectrum, system.size("n_train")
    if isinstance(system, InteractingPool):
        target = system.features.T @ system.targets / system.targets.size
        chosen = jax.random.permutation(key, system.targets.size)[:count]
        features, labels = system.features[chosen], system.targets[chosen]
    else:
        target = jnp.sqrt(spectrum.target_power)
        feature_key, rest_key = jax.random.split(jax.random.fold_in(key, 1))
        features = jax.random.normal(feature_key, (count, target.size))
        labels = features @ target + jnp.sqrt(spectrum.tail_power) * jax.random.normal(
            rest_key, (count,)
        )
    numbers = (features, labels, spectrum.eigenvalues, system.temperature, system.quartic)
    return _sampled(
        system,
        key,
        jax.tree_util.Partial(_SampleAction(system.loss), numbers),
        target,
        chains,
        warmup,
        samples,
    )


class _Action:
    """-S[f] as a function of (numbers, f). Two actions with equal losses are equal, so that they
    share one compiled program.
    """

    def __init__(self, loss: EvenLoss) -> None:
        self.loss = loss

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self.loss == other.loss

    def __hash__(self) -> int:
        return hash((type(self), self.loss))


class _ModeAction(_Action):
    def __call__(self, numbers: tuple, modes: Float[Array, "mode"]) -> Float[Array, ""]:
        target, eigenvalues, density, quartic, rest = numbers
        square = jnp.sum((modes - target) ** 2) + rest
        potential = square if self.loss == EvenLoss("z**2") else self.loss.average(square)
        return -jnp.sum(modes**2 / eigenvalues) / 2 - density / 2 * (
            potential + 3 * quartic * square**2
        )


class _SampleAction(_Action):
    def __call__(self, numbers: tuple, modes: Float[Array, "mode"]) -> Float[Array, ""]:
        features, labels, eigenvalues, temperature, quartic = numbers
        deviation = features @ modes - labels
        energy = jnp.sum(self.loss(deviation) + quartic * deviation**4)
        return -jnp.sum(modes**2 / eigenvalues) / 2 - energy / (2 * temperature)


def _itself(modes: Float[Array, "mode"]) -> Float[Array, "mode"]:
    return modes


def _sampled(
    system: InteractingRegression,
    key: PRNGKeyArray,
    action: Any,
    target: Float[Array, "mode"],
    chains: int,
    warmup: int,
    samples: int,
) -> SampledModes:
    """Observables of chains that start in the Gaussian posterior of the theory.

    The widths of that posterior also set the scale of the proposals. Neither choice changes the law
    that is sampled.
    """
    theory = gap_equation(system)
    # In units of the widths of the theory all curvatures are of order one.
    step = jnp.asarray(target.size, float) ** -0.25
    width, begin = jnp.sqrt(theory.mode_variance), theory.learnability * target
    start_key, run_key = jax.random.split(jax.random.fold_in(key, 2))
    initial = begin + width * jax.random.normal(start_key, (chains, target.size))
    run: Samples = sample(
        action,
        initial,
        run_key,
        warmup=warmup,
        samples=samples,
        step_size=step,
        scale=width,
        trajectory=_QUARTER,
        observe=_itself,
    )
    mean = run.mean
    spread = jnp.mean((run.observables - mean) ** 2, axis=(0, 1))
    # The sampling error of the means is subtracted, because it would count as an error of the
    # predictor.
    scatter = jnp.sum(run.standard_error**2)
    bias = jnp.sum((mean - target) ** 2) - scatter + system.spectrum.tail_power
    fluctuation = jnp.sum(spread) + scatter + system.spectrum.tail
    return SampledModes(
        squared_deviation=bias + fluctuation,
        test_error=bias,
        fluctuation=fluctuation,
        shift=bare_mass(system, bias + fluctuation) / system.density - 1,
        learnability=jnp.where(target != 0, mean / jnp.where(target != 0, target, 1.0), 0.0),
        mode_mean=mean * jnp.sign(target),
        mode_variance=spread,
        **of_chains(run, run.estimates),
    )
