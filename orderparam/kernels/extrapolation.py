"""From the spectrum of a finite pool to that of the population it was drawn from: power laws beyond the resolved modes.

The largest modes of a kernel on M data points are those of the population; the small ones are not, because M points cannot tell
small modes apart. Learning curves beyond M samples need them. Kernels on real data have spectra and targets that decay as powers
of the mode number (Spigler, Geiger and Wyart 2020; Bahri et al. 2024). The eigenvalues are continued by the power law that keeps
the trace; the power law of the target is the one that explains a measured learning curve. Derived for this package, not in the
cited papers.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.kernels.effective_ridge import EffectiveRidge, effective_ridge
from orderparam.kernels.spectrum import Spectrum

_PER_DECADE = 24  # levels per decade of the continuation


class Continued(eqx.Module):
    """A spectrum continued beyond the modes of a pool.

    capacity: alpha in lambda_k ~ k^-alpha beyond the resolved modes.
    source:   b in sum_{j>k} y_j^2 ~ k^-b beyond the head of the target.
    noise:    power of the targets that no mode explains, like label noise of that variance (summed over outputs).
    misfit:   root of the summed squares of the relative deviations from the measured curve.
    """

    spectrum: Spectrum
    capacity: float
    source: float
    noise: float
    misfit: float


def continue_eigenvalues(pool: Spectrum, modes: float = 1e9, resolved_share: float = 1 / 6) -> tuple[Spectrum, float]:
    """The eigenvalues of a pool continued to `modes` modes, and the capacity exponent; the target is left to `fit_target`.

    The largest `resolved_share` of the modes are kept. With k0 of them, last eigenvalue lambda_0 (a mean over its neighbours) and
    trace R left for the others, lambda_k = lambda_0 (k/k0)^-alpha with alpha = 1 + k0 lambda_0/R sums to the same trace.

    pool: as `Spectrum.from_pool` makes it, levels in decreasing order, one mode each. Raises `ValueError` when fewer than 48 of
    its modes have a positive eigenvalue.
    """
    eigenvalues = np.asarray(pool.eigenvalues)
    rank = int(np.sum(eigenvalues > 1e-14 * eigenvalues[0]))
    if rank < 48:
        raise ValueError(f"the kernel has {rank} modes on these data: at least 48 are needed to continue its spectrum")
    resolved = max(8, int(rank * resolved_share))
    last = float(np.mean(eigenvalues[resolved - 3 : resolved + 3]))
    left = float(eigenvalues[resolved:].sum() + pool.tail)
    capacity = 1 + resolved * last / left
    edges = np.geomspace(resolved, modes, int(_PER_DECADE * np.log10(modes / resolved)) + 2)
    traces = left * -np.diff((edges / resolved) ** (1 - capacity))  # exact integrals over each level: the trace is kept
    values = np.concatenate([eigenvalues[:resolved], traces / np.diff(edges)])
    counts = np.concatenate([np.ones(resolved), np.diff(edges)])
    continued = Spectrum(values, np.zeros_like(values), counts, tail=left * (edges[-1] / resolved) ** (1 - capacity))
    return continued, float(capacity)


def fit_target(
    continued: Spectrum,
    capacity: float,
    pool: Spectrum,
    n_train: Float[np.ndarray, "size"],
    error: Float[np.ndarray, "size"],
    temperature: float,
    noise: float,
    head_share: float = 1 / 40,
) -> Continued:
    """The power law of the target that explains a measured learning curve within the self-consistent theory.

    Given kappa and gamma (which depend on the eigenvalues alone) the error against noisy labels is linear in the target,

        E(P) = [sum_k (1 - L_k)^2 Y_k + s2] / (1 - gamma),   Y_head from the pool,   sum_{j>k} y_j^2 = A k^-b beyond it.

    A >= 0 is found by least squares in relative deviations for each b, the total power counting as one more measurement (P = 0),
    and b by a scan.

    n_train, error: held-out error against labels as they are, at several training-set sizes with ridge `temperature`.
    noise: s2, summed over outputs, from elsewhere (`Spectral.most_likely_noise`): on a short curve a floor and a slow power law
    look alike.
    """
    power = np.asarray(pool.target_power)
    size = power.size
    head = max(4, int(size * head_share))
    solved = _solve(continued, jnp.asarray(np.asarray(n_train, float)), jnp.asarray(float(temperature)))
    unlearned = (1 - np.asarray(solved.learnability)) ** 2 / np.asarray(solved.complement)[:, None]
    enlarged = 1 / np.asarray(solved.complement)
    upper = np.cumsum(np.asarray(continued.multiplicities))
    lower = upper - np.asarray(continued.multiplicities)
    scale = np.concatenate([np.asarray(error, float), [power.sum()]])
    rest = scale - np.append(unlearned[:, :head] @ power[:head], power[:head].sum())
    # Noise is spread evenly over the modes of a pool: its share is taken out of the head.
    rest -= noise * np.append(enlarged - unlearned[:, :head].sum(axis=1) / size, 1 - head / size)
    best: tuple[float, float, float] | None = None
    for exponent in np.linspace(0.04, 4.0, 100):
        shape = _power_law_levels(lower, upper, head, exponent)
        column = np.append(unlearned @ shape, shape.sum()) / scale
        amplitude = max(0.0, float(column @ (rest / scale) / (column @ column)))
        misfit = float(np.linalg.norm(rest / scale - amplitude * column))
        if best is None or misfit < best[0]:
            best = (misfit, float(exponent), amplitude)
    assert best is not None
    misfit, exponent, amplitude = best
    shape = _power_law_levels(lower, upper, head, exponent)
    target = amplitude * shape
    target[:head] += np.maximum(power[:head] - noise / size, 0.0)
    spectrum = eqx.tree_at(lambda s: s.target_power, continued, jnp.asarray(target))
    return Continued(spectrum, capacity, exponent, noise, misfit)


@jax.jit
def _solve(spectrum: Spectrum, n_train: Float[Array, "size"], temperature: Float[Array, ""]) -> EffectiveRidge:
    return jax.vmap(lambda p: effective_ridge(spectrum, p, temperature))(n_train)


def _power_law_levels(lower: np.ndarray, upper: np.ndarray, head: int, exponent: float) -> np.ndarray:
    """Power k^-b of the modes beyond `head`, in levels that reach from mode `lower` to mode `upper`."""
    return np.maximum(lower, head) ** -exponent - np.maximum(upper, head) ** -exponent
