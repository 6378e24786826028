"""Random layers of attention: their kurtosis and kernels at a finite number of heads."""

import jax
import numpy as np
import pytest

from orderparam.kernels.attention import differences, logit_rule, softmax_of
from orderparam.systems.attention import (
    RandomHeads,
    RandomTransformer,
    drawn_head_kernels,
    drawn_head_kurtosis,
    drawn_transformer_kernels,
    head_kernels,
    head_kurtosis,
    transformer_kernels,
)

X = jax.random.normal(jax.random.key(0), (2, 3, 5))


def test_the_kurtosis_of_one_token_against_another_program():
    """12 kurtoses of the first token alone times heads, at scale 1: .146962 and .139411."""
    for gram, wanted in (
        ([[0.757544, -0.010673], [-0.010673, 0.488891]], 0.146962),
        ([[1.053751, -0.003475], [-0.003475, 0.87882]], 0.139411),
    ):
        gram = np.asarray(gram)
        points, weights = logit_rule(1, 5)
        p = softmax_of(points * np.sqrt(gram[0, 0] * differences(gram)[0, 0]), 1.0)
        k = np.sum((p @ gram) * p, axis=1)
        found = 3 * (weights @ k**2 / (weights @ k) ** 2 - 1)
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("key_width", [1, 4, 64])
def test_linear_attention_has_an_exact_kurtosis_at_every_key_width(key_width):
    system = RandomHeads(X, 3, key_width, 0.8, "identity")
    theory = head_kurtosis(system)
    runs = [drawn_head_kurtosis(system, jax.random.key(seed), networks=1000) for seed in range(16)]
    for name in ("variance", "kurtosis"):
        found = np.array([getattr(run, name) for run in runs])
        error = found.std(axis=0, ddof=1) / 4
        # heavy tails at one entry: the sample kurtosis has a bias of its own
        slack = 0.1 if key_width == 1 and name == "kurtosis" else 0.0
        apart = np.abs(found.mean(axis=0) - getattr(theory, name))
        assert np.all(apart < 4 * error + slack * getattr(theory, name))


def test_the_kurtosis_of_softmax_at_wide_queries():
    system = RandomHeads(X, 2, 256, 2.0, log2_points=12)
    theory = head_kurtosis(system)
    runs = [drawn_head_kurtosis(system, jax.random.key(seed), networks=250) for seed in range(16)]
    found = np.array([run.kurtosis for run in runs])
    error = found.std(axis=0, ddof=1) / 4 + 0.02 * theory.kurtosis  # points; 1/256
    assert np.all(np.abs(found.mean(axis=0) - theory.kurtosis) < 4 * error)
    np.testing.assert_allclose(theory.kurtosis * 2, theory.head_kurtosis)


def test_one_token_has_no_kurtosis():
    assert head_kurtosis(RandomHeads(X[:, :1])).kurtosis.max() == 0


@pytest.mark.parametrize("heads", [1, 8])
def test_the_kernel_of_linear_attention_holds_for_every_number_of_heads(heads):
    system = RandomHeads(X, heads, 6, 0.8, "identity")
    theory = head_kernels(system)
    runs = [drawn_head_kernels(system, jax.random.key(seed), networks=60) for seed in range(16)]
    found = np.array([run.nngp for run in runs])
    error = found.std(axis=0, ddof=1) / 4
    assert np.all(np.abs(found.mean(axis=0) - theory.nngp) < 5 * error)


def test_transformers_tend_to_their_limit():
    """The deviation of the tangent kernel shrinks with heads; the kernel is met at 12 of them."""
    system = RandomTransformer(X[:, :2], 12)
    theory = transformer_kernels(system)
    runs = [
        drawn_transformer_kernels(system, jax.random.key(seed), networks=8) for seed in range(16)
    ]
    for name, bias in (("nngp", 0.1), ("ntk", 0.2)):
        found = np.array([getattr(run, name) for run in runs])
        error = found.std(axis=0, ddof=1) / 4
        wanted = getattr(theory, name)
        assert np.all(np.abs(found.mean(axis=0) - wanted) < 4 * error + bias * np.max(wanted))


def test_fewer_than_two_networks_are_refused():
    with pytest.raises(ValueError, match="networks = 1"):
        drawn_head_kernels(RandomHeads(X), jax.random.key(0), networks=1)
