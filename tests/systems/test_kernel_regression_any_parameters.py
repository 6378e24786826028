"""Any legal parameters: numbers that make sense, or a curve that says it is none; one program for
all of them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.kernels import Spectrum
from orderparam.systems import kernel_regression as kr

DRAWS = 200
LEVELS = 8

ON_SPECTRA = {
    "self_consistent": kr.self_consistent,
    "mode_decomposition": kr.mode_decomposition,
    "annealed": kr.annealed,
    "equivalent_kernel": kr.equivalent_kernel,
    "equivalent_kernel_corrected": kr.equivalent_kernel_corrected,
    "renormalization_group": kr.renormalization_group,
    "renormalization_group, bare": partial(
        kr.renormalization_group, cutoff="bare", residual="equivalent_kernel"
    ),
    "optimal_temperature": kr.optimal_temperature,
    "heteroscedastic": kr.heteroscedastic,
}
ON_POOLS = {
    "self_consistent": kr.self_consistent,
    "self_consistent_on_pool": kr.self_consistent_on_pool,
    "cavity": kr.cavity,
    "local_renormalization": kr.local_renormalization,
    "equivalent_kernel_on_pool": kr.equivalent_kernel_on_pool,
    "equivalent_kernel_corrected": kr.equivalent_kernel_corrected,
}
# Without a ridge and with more samples than modes (y - f)/T diverges, and at the rank itself the
# error does.
MAY_DIVERGE = {"test_error", "population_error", "train_error", "variance", "squared_discrepancy"}


def numbers(random, shape, low, high, zeros=0.2):
    """Of any magnitude from 10^low to 10^high, some of them zero."""
    return np.where(random.random(shape) < zeros, 0.0, 10 ** random.uniform(low, high, shape))


def sensible(result):
    """Of a batch: everywhere finite, or not converged or not valid; never of an impossible sign."""
    fields = {name: np.asarray(getattr(result, name)) for name in type(result).dims()}
    trusted = fields.pop("converged") & fields.pop("valid", True)
    fields.pop("found_cutoff", None)
    assert trusted.mean() > 0.2  # the draws are no exotic ones
    for name, values in fields.items():
        rows = values.reshape(len(values), -1)
        good = np.isfinite(rows) | ((rows == np.inf) if name in MAY_DIVERGE else False)
        bad = trusted & ~good.all(axis=1)
        assert not bad.any(), f"{name} = {rows[bad][0]} in draw {np.flatnonzero(bad)[0]}"
        scale = np.abs(np.nan_to_num(rows, posinf=0, neginf=0)).max(axis=1, initial=1e-300)
        below = (rows < -1e-9 * scale[:, None]).any(axis=1)
        if name == "variance":  # a difference of two errors
            below = (rows < -1e-9 * np.abs(fields.get("bias", rows)).reshape(len(rows), -1)).any(
                axis=1
            ) & trusted
        assert not below.any(), f"{name} = {rows[below][0]} in draw {np.flatnonzero(below)[0]}"


@pytest.mark.parametrize("name", ON_SPECTRA)
def test_any_spectrum(name):
    random = np.random.default_rng(0)
    eigenvalues, power = (
        numbers(random, (DRAWS, LEVELS), -8, 1),
        numbers(random, (DRAWS, LEVELS), -6, 1),
    )
    eigenvalues[:, 0] += 1e-3
    counts = random.integers(0, 9, (DRAWS, LEVELS)).astype(float)
    tail, tail_power = numbers(random, DRAWS, -6, 0, 0.5), numbers(random, DRAWS, -6, 0, 0.5)
    n_train, temperature = 10 ** random.uniform(-1, 3, DRAWS), numbers(random, DRAWS, -10, 3)
    noise = numbers(random, DRAWS, -6, 1)
    regions = [numbers(random, (DRAWS, 3), -6, 1) for _ in range(2)]

    def at(
        eigenvalues, power, counts, tail, tail_power, n_train, temperature, noise, ridges, noises
    ):
        fields = (
            Spectrum(eigenvalues, power, counts, tail, tail_power),
            n_train,
            temperature,
            noise,
        )
        if name != "heteroscedastic":
            return ON_SPECTRA[name](kr.KernelRegression(*fields))
        weights = jnp.array([0.2, 0.3, 0.5])
        return kr.heteroscedastic(
            kr.HeteroscedasticRegression(
                *fields, weights=weights, extra_temperature=ridges, extra_noise=noises
            )
        )

    sensible(
        jax.vmap(at)(
            eigenvalues, power, counts, tail, tail_power, n_train, temperature, noise, *regions
        )
    )


@pytest.mark.parametrize("rank", [12, 5])
@pytest.mark.parametrize("name", ON_POOLS)
def test_any_numbers_on_a_pool(name, rank):
    random = np.random.default_rng(1)
    features = random.normal(size=(12, rank)) * np.arange(1, rank + 1) ** -1.0
    pool = kr.PoolRegression.from_kernel(
        features @ features.T, np.sign(random.normal(size=12)), 5.0, 0.1
    )
    n_train, temperature = random.uniform(0.1, 11.9, DRAWS), numbers(random, DRAWS, -8, 3)
    if name == "equivalent_kernel_on_pool":
        temperature += 1e-9
    noise = numbers(random, DRAWS, -6, 1)
    sensible(
        jax.vmap(lambda n, t, s: ON_POOLS[name](pool.with_(n_train=n, temperature=t, noise=s)))(
            n_train, temperature, noise
        )
    )


@pytest.mark.parametrize(
    "theory",
    [kr.self_consistent, kr.renormalization_group, kr.optimal_temperature, kr.cavity],
    ids=lambda theory: theory.name,
)
def test_other_numbers_compile_nothing(theory):
    features = np.random.default_rng(2).normal(size=(10, 14))
    pool = kr.PoolRegression.from_kernel(features @ features.T, features[:, 0], 5.0, 0.1)
    compiled = []

    def listen(event, seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        jax.block_until_ready(theory(pool))
        assert compiled  # the count can see a compilation
        compiled.clear()
        for changes in ({}, {"n_train": 7}, {"temperature": np.float32(2), "noise": 1}):
            jax.block_until_ready(theory(pool.with_(**changes)))
        assert not compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
