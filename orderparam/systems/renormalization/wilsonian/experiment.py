"""Bayesian regression with a loss that is not quadratic, really sampled: its modes at large ridge,
and on drawn training sets.
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

_QUARTER = 1.6  # of a period, in which a mode of unit width forgets where it was


class SampledModes(FromChains):
    """One posterior, sampled. squared_deviation: <Q>, Q = sum_k (f_k - y_k)^2 and what no mode can
    learn; test_error: that of the posterior mean; fluctuation: their difference. mode_mean:
    (level,) <f_k> in the direction of y_k; mode_variance: Var f_k. learnability: (level,) <f_k> /
    y_k (0 where there is no target). shift: m_bare(<Q>) / rho - 1, by which the interaction raises
    the mass."""

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
    """The action of the modes itself, S[f] of `InteractingRegression`, by Hamiltonian Monte Carlo:
    what the flow integrates out.

    Unresolved modes are too many to fluctuate together and too small to be learned: they add a
    constant to Q. Differs from the gap equation by one over the number of modes that fluctuate
    together.
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


def _resolved(system: InteractingRegression, **_: Any) -> None:
    single_modes(system)
    if system.spectrum.tail > 0:
        raise ValueError(
            f"{type(system).__name__}.spectrum.tail = {float(system.spectrum.tail):g}: must be 0 (modes are drawn one by one)"
        )


@experiment(check=_resolved)
def sampled_regression(
    system: InteractingRegression,
    key: PRNGKeyArray,
    *,
    chains: int = 8,
    warmup: int = 200,
    samples: int = 300,
) -> SampledModes:
    """The posterior of n_train samples, sum f_k^2/(2 lambda_k) + sum_mu [l(d_mu) + u d_mu^4]/(2 T),
    by Hamiltonian Monte Carlo.

    The features of a sample are independent standard Gaussians; of a pool they are those of points
    drawn without replacement, and errors are those over the whole pool. Averages over the posterior
    of one training set. Differs from the theory of large ridge by the error over the ridge, Q*/T,
    to leading order.
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
    """-S[f] as a function of (numbers, f), equal to others of the same loss so that they share one
    compiled program.
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
    """Chains begin in the Gaussian law of the theory, and move in its widths; neither changes where
    they end.
    """
    theory = gap_equation(system)
    # in the widths of the theory curvatures are of order one
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
    # of the means, which would count as error of the predictor
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
