"""The equilibrium average of an observable measured along Markov chains, with its error bar and
health checks."""

import math
from collections.abc import Callable
from typing import Any

import blackjax.diagnostics
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Num

from orderparam.core.text import with_error

# In equilibrium R-hat exceeds 1 by about 1/(effective samples per chain), so that the two limits
# agree for four chains. Vehtari et al. 2021 advise 1.01 and 400; compare `r_hat` and
# `effective_samples` with those when runs are long.
R_HAT_LIMIT = 1.05
EFFECTIVE_SAMPLES = 100.0


class Estimate(eqx.Module):
    """Equilibrium average of one observable of shape `*shape`, from all chains together.

    mean:              average over chains and draws.
    standard_error:    Monte Carlo standard error of the mean, (standard deviation)/sqrt(effective
                       sample size), the latter from the autocorrelation of the values themselves.
    r_hat:             rank-normalised split R-hat, the larger of bulk and folded (Vehtari, Gelman,
                       Simpson, Carpenter, Bürkner 2021, section 4): 1 when all chains, and both
                       halves of each, look alike.
    effective_samples: bulk effective sample size over all chains (same paper, section 4). It may
        exceed the number of draws where successive draws are anticorrelated, as in Hamiltonian
        Monte Carlo.
    constant:          the observable has one and the same value in every draw; then
                       `standard_error` and `effective_samples` are 0 and `r_hat` is nan.
    """

    mean: Float[Array, "*shape"]
    standard_error: Float[Array, "*shape"]
    r_hat: Float[Array, "*shape"]
    effective_samples: Float[Array, "*shape"]
    constant: Bool[Array, "*shape"]

    @property
    def reliable(self) -> Bool[Array, "*shape"]:
        """R-hat < 1.05 and at least 100 effective samples."""
        return (self.r_hat < R_HAT_LIMIT) & (self.effective_samples >= EFFECTIVE_SAMPLES)

    def __repr__(self) -> str:
        if isinstance(self.mean, jax.core.Tracer) or not isinstance(
            self.mean, jax.Array | np.ndarray
        ):
            return f"Estimate({self.mean})"
        if self.mean.ndim == 0:
            value = with_error(float(self.mean), float(self.standard_error))
            return (
                f"{value} [R-hat {float(self.r_hat):.2f}, ESS {float(self.effective_samples):.0f}]"
            )
        worst, least = _of_defined(np.max, self.r_hat), _of_defined(np.min, self.effective_samples)
        return f"array {self.mean.shape} [R-hat up to {worst:.2f}, ESS from {least:.0f}]"


def _of_defined(extreme: Callable[[Any], Any], values: Array) -> float:
    """The extreme of the entries that are numbers, nan when there is none."""
    array = np.asarray(values)
    array = array[~np.isnan(array)]
    return float(extreme(array)) if array.size else math.nan


def estimate(
    values: Num[Array, "chain draw *shape"] | Bool[Array, "chain draw *shape"],
) -> Estimate:
    """Average, error bar, R-hat and effective sample size of recorded values of shape (chain, draw,
    ...).

    Chains that started from different states may be judged together (do they agree?) or separately,
    `estimate(values[:4])`. A single chain is judged by its two halves, which cannot detect a mode
    that it never visited. Pure; vmappable.

    Raises `ValueError` for fewer than 4 draws per chain.
    """
    if jnp.ndim(values) < 2 or jnp.shape(values)[1] < 4:
        raise ValueError(
            f"values has shape {jnp.shape(values)}: must be (chain, draw, ...), at least 4 draws "
            "per chain"
        )
    chains, draws, *shape = jnp.shape(values)
    flat = _estimate(jnp.asarray(values, float).reshape(chains, draws, -1))
    return jax.tree.map(lambda part: part.reshape(shape), flat)


@jax.jit
def _estimate(values: Float[Array, "chain draw entry"]) -> Estimate:
    half = values.shape[1] // 2
    halves = jnp.concatenate([values[:, :half], values[:, half : 2 * half]])
    entries = (values.shape[-1],)  # blackjax squeezes an axis of length one
    r_hat = blackjax.diagnostics.rhat(values).reshape(entries)
    effective_samples = blackjax.diagnostics.ess_bulk(values).reshape(entries)
    ess_of_mean = blackjax.diagnostics.effective_sample_size(halves).reshape(entries)
    constant = jnp.max(values, axis=(0, 1)) == jnp.min(values, axis=(0, 1))
    error = jnp.where(constant, 0.0, jnp.std(values, axis=(0, 1), ddof=1) / jnp.sqrt(ess_of_mean))
    return Estimate(jnp.mean(values, axis=(0, 1)), error, r_hat, effective_samples, constant)
