"""Exponents of a pool's spectrum and target, the learning exponent that follows, and the learning curve of the full spectrum."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.systems.scaling_laws.scale_free import tail
from orderparam.systems.scaling_laws.scale_free.model import ScaleFreeData

_FIRST = 2  # rank from which on laws are fitted
_SHARE = 4  # the last rank is M / 4, so that it is below half of a half-sample
_TARGET_SHARE = 10  # of target powers M / 10: what small modes of a pool carry is not what those of the population do
_RESOLVED = 1e-12  # of the largest eigenvalue


class ScaleFreeFit(Result):
    """Eigenvalues at some ranks, those of the population that they tell of, and the target's power from each rank on.

    spectral_exponent: a of k^-a in the widest window, from rank `first` to `last`, in which ln lambda deviates by less than the
    tolerance (`power_law`: there is one). target_exponent: b - 1 of sum_(j >= k) y_j^2 up to rank M/10. learning_exponent:
    min(b - 1, 2a), that of the test error without a ridge and without noise. X_error: root mean square difference from
    half-samples of the pool, which differ by chance and where the correction for its size is not the right one.
    power_deviation, cutoff_deviation, lognormal_deviation: root mean square deviation of ln lambda over all ranks from A k^-a,
    from A k^-a e^(-k/c), and from the quantiles of a log-normal law.
    """

    rank: Float[Array, "rank"]
    eigenvalue: Float[Array, "rank"]
    population_eigenvalue: Float[Array, "rank"]
    local_exponent: Float[Array, "rank"]
    target_tail: Float[Array, "rank"]
    spectral_exponent: Float[Array, ""]
    spectral_exponent_error: Float[Array, ""]
    target_exponent: Float[Array, ""]
    target_exponent_error: Float[Array, ""]
    learning_exponent: Float[Array, ""]
    learning_exponent_error: Float[Array, ""]
    first: Float[Array, ""]
    last: Float[Array, ""]
    power_law: Bool[Array, ""]
    power_deviation: Float[Array, ""]
    cutoff_deviation: Float[Array, ""]
    lognormal_deviation: Float[Array, ""]


def _large_enough(system: ScaleFreeData, **_: object) -> None:
    if len(system.gram) < 100:
        raise ValueError(f"ScaleFreeData.gram has {len(system.gram)} examples: a spectrum's exponent needs at least 100")


@theory(traced=False, check=_large_enough)
def scale_free_fit(system: ScaleFreeData, *, tolerance: float = 0.05, half_samples: int = 16) -> ScaleFreeFit:
    """`scale_free.tail`: eigenvalues are corrected for the size of the pool, where the kernel has more modes than the pool has
    examples, before anything is fitted. The same half-samples for the same pool."""
    gram, targets = np.asarray(system.gram), np.asarray(system.targets)
    pool = len(gram)
    values = _modes(gram, targets)[0]
    modes = int(np.sum(values > _RESOLVED * values[0]))
    finite = modes < pool - 1  # a constant may have been taken away
    rank = tail.ranks(_FIRST, min(pool // _SHARE, modes - 1))

    def laws(gram: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        values, power = _modes(gram, targets)
        beyond = np.cumsum(power[::-1])[::-1]
        return values[rank - 1], tail.corrected(rank, values[rank - 1], None if finite else len(gram)), beyond[rank - 1]

    raw, population, beyond = laws(gram, targets)
    law = tail.widest(rank, population, tolerance)
    few = rank[rank <= pool // _TARGET_SHARE]
    window = int(min(law.window[0], few[0 if len(few) < 8 else -8])), int(few[-1])
    rng, drawn = np.random.default_rng(0), []
    for _ in range(half_samples):
        half = rng.choice(pool, pool // 2, replace=False)
        _, again, rest = laws(gram[np.ix_(half, half)], targets[half])
        drawn.append([tail.fitted(rank, again, law.window).exponent, tail.fitted(rank, rest, window).exponent])
    target = tail.fitted(rank, beyond, window).exponent
    exponents = np.array([law.exponent, target, min(target, 2 * law.exponent)])
    halves = np.array([[a, b, min(b, 2 * a)] for a, b in drawn])
    error = np.sqrt(np.mean((halves - exponents) ** 2, axis=0))
    shapes = tail.shapes(rank, population, modes)
    return ScaleFreeFit(
        rank=jnp.asarray(rank.astype(float)),
        eigenvalue=jnp.asarray(raw),
        population_eigenvalue=jnp.asarray(population),
        local_exponent=jnp.asarray(tail.local_exponents(np.log(rank), np.log(population))),
        target_tail=jnp.asarray(beyond),
        spectral_exponent=jnp.asarray(exponents[0]),
        spectral_exponent_error=jnp.asarray(error[0]),
        target_exponent=jnp.asarray(exponents[1]),
        target_exponent_error=jnp.asarray(error[1]),
        learning_exponent=jnp.asarray(exponents[2]),
        learning_exponent_error=jnp.asarray(error[2]),
        first=jnp.asarray(float(law.window[0])),
        last=jnp.asarray(float(law.window[1])),
        power_law=jnp.asarray(law.deviation < tolerance),
        power_deviation=jnp.asarray(shapes.power),
        cutoff_deviation=jnp.asarray(shapes.cutoff),
        lognormal_deviation=jnp.asarray(shapes.lognormal),
    )


def _modes(gram: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of gram/M in decreasing order, and the target's power on each."""
    values, vectors = np.linalg.eigh(gram / len(gram))
    return values[::-1], ((vectors.T @ targets) ** 2 / len(gram))[::-1]


class SpectralLearningCurve(Result):
    """Mean square errors without 1/2: population_error over the whole pool, test_error over what was not learned.

    effective_dimension: sum lambda/(lambda + kappa).
    """

    test_error: Float[Array, ""]
    population_error: Float[Array, ""]
    effective_dimension: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def spectral_curve(system: ScaleFreeData) -> SpectralLearningCurve:
    """The error of kernel regression from all eigenvalues and target powers of the pool, no law fitted to them: it bends where
    they do (`orderparam.kernels.effective_ridge`). test_error is population_error/(1 - P/M): what is learned has no error,
    exactly so without a ridge."""
    spectrum = system.spectrum
    solved = effective_ridge(spectrum, system.n_train, system.ridge)
    error = spectrum.target_power @ (1 - solved.learnability) ** 2 / solved.complement
    rest = 1 - system.n_train / len(system.gram)
    return SpectralLearningCurve(error / rest, error, jnp.sum(solved.learnability), solved.residual, solved.converged)
