"""Modes integrated out of kernel regression, smallest eigenvalue first, and their effect on the
remaining modes.

A decimated mode has two effects: its variance becomes a ridge for the remaining modes, and its
share of the target becomes label noise (Howard, Jefferson, Maiti and Ringel 2024).
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.kernels.effective_ridge import EffectiveRidge, effective_ridge, learnability, ratio
from orderparam.kernels.spectrum import Spectrum

Number = float | Float[Array, ""]


class SpectralTraces(eqx.Module):
    """The exact effect of every level on the others when it is integrated out, in the order of the
    spectrum.

    ridge: kappa m L, its posterior variance. noise: (1 - L)^2 Y + m (L^2/P) E_noisy, its share of
    the error. noisy: E_noisy, the error of all levels against noisy targets. solved: the
    self-consistent theory of all of them.
    """

    ridge: Float[Array, "level"]
    noise: Float[Array, "level"]
    noisy: Float[Array, ""]
    solved: EffectiveRidge


class Couplings(eqx.Module):
    """Along the flow, levels in decreasing order of eigenvalue: entry n is after integrating out
    all levels after n.

    mode_count: number of remaining modes. eigenvalue: that of level n.
    ridge, noise: T'(n) = T + sum_{k>n} m lambda and s2'(n) = s2 + sum_{k>n} Y (leading order in
    lambda P / T'). exact_ridge:  T*(n) = T + kappa sum_{k>n} m L, which leaves kappa unchanged.
    exact_noise:  s2*(n) = s2 + sum_{k>n} [(1 - L)^2 Y + m (L^2/P) E_noisy], which leaves E_noisy
    unchanged.
    variance:     kappa sum_{k<=n} m L, the posterior variance of the remaining modes.
    """

    mode_count: Float[Array, "level"]
    eigenvalue: Float[Array, "level"]
    ridge: Float[Array, "level"]
    noise: Float[Array, "level"]
    exact_ridge: Float[Array, "level"]
    exact_noise: Float[Array, "level"]
    variance: Float[Array, "level"]


def traces(
    spectrum: Spectrum, n_train: Number, temperature: Number, noise: Number
) -> SpectralTraces:
    """The exact effects of the self-consistent theory, T <- T + lambda kappa / (lambda + kappa) for
    each mode, with kappa of all modes.

    Derived for this package and not in the cited papers.
    """
    solved = effective_ridge(spectrum, n_train, temperature)
    bias = (1 - solved.learnability) ** 2 * spectrum.target_power
    noisy = ratio(jnp.sum(bias) + spectrum.tail_power + noise, solved.complement)
    spread = spectrum.multiplicities * solved.learnability**2 * noisy / n_train
    return SpectralTraces(
        solved.threshold * spectrum.multiplicities * solved.learnability,
        bias + spread,
        noisy,
        solved,
    )


def couplings(
    spectrum: Spectrum, left: SpectralTraces, temperature: Number, noise: Number
) -> Couplings:
    """Ridge and noise along the decimation, to leading order (Howard et al. 2024) and exactly."""
    order = jnp.argsort(-spectrum.eigenvalues)
    ridge, noise = temperature + spectrum.tail, noise + spectrum.tail_power
    return Couplings(
        mode_count=jnp.cumsum(spectrum.multiplicities[order]),
        eigenvalue=spectrum.eigenvalues[order],
        ridge=ridge + after((spectrum.multiplicities * spectrum.eigenvalues)[order]),
        noise=noise + after(spectrum.target_power[order]),
        exact_ridge=ridge + after(left.ridge[order]),
        exact_noise=noise + after(left.noise[order]),
        variance=jnp.cumsum(left.ridge[order]),
    )


def learnable(
    spectrum: Spectrum, n_train: Number, temperature: Number, threshold: Number
) -> Bool[Array, "level"]:
    """The levels that remain when those with a learnability below `threshold` are integrated out.

    The first level n that is integrated out has P lambda_n / (P lambda_n + T + sum_{k>=n} m lambda)
    < threshold, and no larger eigenvalue does. The search begins at the large eigenvalues: at the
    small end, where the sum over smaller modes of a finite spectrum is nearly empty, even the
    smallest mode seems learnable at small T. All levels are kept where none qualifies.
    """
    order = jnp.argsort(-spectrum.eigenvalues)
    eigenvalues, weights = (
        spectrum.eigenvalues[order],
        (spectrum.multiplicities * spectrum.eigenvalues)[order],
    )
    ridge = temperature + spectrum.tail + after(weights) + weights
    unlearnable = learnability(eigenvalues, ridge / n_train) < threshold
    first = jnp.where(jnp.any(unlearnable), jnp.argmax(unlearnable), unlearnable.size)
    return jnp.argsort(order) < first


def largest(spectrum: Spectrum, count: Number) -> Bool[Array, "level"]:
    """The levels of the largest eigenvalues with at most `count` modes together; a level is never
    divided."""
    order = jnp.argsort(-spectrum.eigenvalues)
    return (jnp.cumsum(spectrum.multiplicities[order]) <= count)[jnp.argsort(order)]


def decimate(spectrum: Spectrum, kept: Bool[Array, "level"]) -> Spectrum:
    """The spectrum with all levels that are not in `kept` moved into its tail."""
    gone = jnp.where(kept, 0.0, 1.0)
    return eqx.tree_at(
        lambda s: (s.eigenvalues, s.target_power, s.tail, s.tail_power),
        spectrum,
        (
            jnp.where(kept, spectrum.eigenvalues, 0.0),
            jnp.where(kept, spectrum.target_power, 0.0),
            spectrum.tail + gone @ (spectrum.multiplicities * spectrum.eigenvalues),
            spectrum.tail_power + gone @ spectrum.target_power,
        ),
    )


def after(values: Float[Array, "level"]) -> Float[Array, "level"]:
    """Cumulative sums from the end: entry n is the sum of all entries after n."""
    return jnp.cumsum(jnp.roll(values, -1).at[-1].set(0.0)[::-1])[::-1]
