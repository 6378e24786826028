"""Attention with infinitely many heads: closed forms, symmetries, and heads that were drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.kernels.attention import attention, covariance_root, differences, logit_rule
from orderparam.kernels.covariance import Covariance, Moments
from orderparam.networks import Architecture, Attention, GlobalAveragePool, Serial, random_kernels

# the covariance of two sequences of two tokens, and what another program made of it
GRAM = np.array(
    [
        [0.757544, -0.010673, 0.471914, 0.202215],
        [0, 0.488891, -0.157718, 0.165425],
        [0, 0, 1.053751, -0.003475],
        [0, 0, 0, 0.87882],
    ]
)
GRAM = np.triu(GRAM) + np.triu(GRAM, 1).T


def of_gram(gram, tokens, ntk=0.0):
    count = len(gram) // tokens
    full = jnp.asarray(gram.reshape(count, tokens, count, tokens).transpose(0, 2, 1, 3))
    own = jnp.stack([full[i, i] for i in range(count)])
    cross = Moments(full, ntk * full)
    alone = Moments(own, ntk * own)
    return Covariance(cross, alone, alone, 20, (tokens,), True, False, "ntk")


def layer(covariance, normaliser="softmax", tied=False, scale=1.0, pairs=True, points=10):
    return attention(covariance, normaliser, tied, scale, 1.0, None, pairs, points)


@pytest.fixture(scope="module")
def sequences():
    return jax.random.normal(jax.random.key(0), (2, 3, 5))


def test_two_tokens_against_another_program():
    """Kernel at scale 1, kernel and tangent kernel at scale 2, of the first token."""
    found = layer(of_gram(GRAM, 2)).cross.nngp[..., 0, 0]
    np.testing.assert_allclose(found[0], [0.35968453, 0.17669432], atol=1e-6)
    np.testing.assert_allclose(found[1, 1], 0.61581442, atol=1e-6)
    found = layer(of_gram(GRAM, 2), scale=2.0).cross
    np.testing.assert_allclose(found.nngp[0, :, 0, 0], [0.428916, 0.182599], atol=2e-6)
    np.testing.assert_allclose(found.ntk[0, :, 0, 0], [0.716039, 0.207023], atol=2e-6)
    np.testing.assert_allclose(found.ntk[1, 1, 0, 0], 1.421629, atol=5e-6)


def test_linear_attention_in_closed_form():
    k = of_gram(GRAM, 2).cross.nngp
    found = layer(of_gram(GRAM, 2), "identity", scale=0.7).cross
    np.testing.assert_allclose(
        found.nngp, 0.49 * k * jnp.sum(k**2, axis=(2, 3), keepdims=True), rtol=1e-12
    )
    # without kernels below: values, queries and keys have one share each
    np.testing.assert_allclose(found.ntk, 3 * found.nngp, rtol=1e-12)
    # Theta = K below: the derivative of a cubic is three times more
    whole = layer(of_gram(GRAM, 2, ntk=1.0), "identity", scale=0.7).cross
    np.testing.assert_allclose(whole.ntk, 6 * found.nngp, rtol=1e-12)


@pytest.mark.parametrize(("normaliser", "tied"), [("softmax", True), ("softmax", False)])
def test_without_logits_attention_is_the_mean_over_tokens(normaliser, tied):
    found = layer(of_gram(GRAM, 2, ntk=0.5), normaliser, tied, scale=0.0).cross
    mean = jnp.mean(of_gram(GRAM, 2).cross.nngp, axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(found.nngp, jnp.broadcast_to(mean, found.nngp.shape), rtol=1e-12)
    np.testing.assert_allclose(found.ntk, 1.5 * found.nngp, rtol=1e-12)


def test_tied_queries_mix_by_a_matrix_that_does_not_fluctuate(sequences):
    x = np.asarray(sequences)
    a = [jax.nn.softmax(1.5 * one @ one.T / 5, axis=-1) for one in x]
    expected = a[0] @ (x[0] @ x[1].T / 5) @ a[1].T
    found = Architecture(Serial((Attention(None, None, tied=True, scale=1.5), GlobalAveragePool())))
    np.testing.assert_allclose(found.nngp(x)[0, 1], expected.mean(), rtol=1e-12)


def test_one_token_attends_to_itself():
    gram = np.array([[1.0, 0.3], [0.3, 2.0]])
    found = layer(of_gram(gram, 1, ntk=0.5)).cross
    np.testing.assert_allclose(found.nngp[..., 0, 0], gram, rtol=1e-12)
    np.testing.assert_allclose(found.ntk[..., 0, 0], 1.5 * gram, rtol=1e-12)


@pytest.mark.parametrize("kind", [{}, {"tied": True}, {"normaliser": "identity"}])
def test_kernels_commute_with_permutations_of_tokens(sequences, kind):
    """k(PX, PY) = k(X, Y) for the token by token kernel whose rows move along."""
    order = jnp.array([2, 0, 1])
    heads = Attention(None, None, scale=1.5, log2_points=11, **kind)
    reader = Architecture(Serial((heads, GlobalAveragePool())))
    kernel, moved = reader.kernel(sequences), reader.kernel(sequences[:, order])
    # points of the average do not move along: the accuracy is theirs
    allowed = {"rtol": 1e-12} if kind else {"atol": 5e-3}
    np.testing.assert_allclose(kernel.nngp, moved.nngp, **allowed)
    np.testing.assert_allclose(kernel.ntk, moved.ntk, **(allowed if kind else {"atol": 2e-2}))


def test_a_row_alone_is_that_of_all_pairs():
    both = layer(of_gram(GRAM, 2)).cross.nngp
    alone = layer(of_gram(GRAM, 2), pairs=False).cross.nngp
    np.testing.assert_allclose(jnp.diagonal(both, axis1=2, axis2=3), alone, rtol=1e-12)


def test_more_points_change_little():
    """Three tokens: fixed points; two tokens: the product rule is converged."""
    gram = np.asarray(jax.random.normal(jax.random.key(3), (6, 9)))
    few, many = (layer(of_gram(gram @ gram.T / 9, 3), points=n).cross for n in (10, 13))
    np.testing.assert_allclose(few.nngp, many.nngp, atol=1e-2 * float(many.nngp.max()))
    points, weights = logit_rule(2, 5)
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-12)
    np.testing.assert_allclose((points.T * weights) @ points, np.eye(2), atol=1e-12)


def test_roots_of_singular_covariances():
    singular = jnp.array([[1.0, 1.0], [1.0, 1.0]])
    root = covariance_root(singular)
    np.testing.assert_allclose(root @ root, singular, atol=1e-12)
    np.testing.assert_allclose(differences(jnp.eye(3)), [[2.0, 1.0], [1.0, 2.0]])


@pytest.mark.parametrize(
    "kind", [{"scale": 1.5}, {"tied": True, "scale": 1.5}, {"normaliser": "identity"}]
)
def test_drawn_heads_meet_their_limit(sequences, kind):
    """At 16 heads of 64 entries; a finite key width adds terms of order 1/64."""

    def reader(heads, channels, keys):
        layer = Attention(heads, channels, keys, log2_points=13, **kind)
        return Architecture(Serial((layer, GlobalAveragePool())))

    limit = reader(None, None, None).kernel(sequences)
    drawn = random_kernels(reader(16, 32, 64), jax.random.key(1), sequences, networks=128)
    for kernel in ("nngp", "ntk"):
        wanted, found = getattr(limit, kernel), getattr(drawn, kernel)
        error = getattr(drawn, kernel + "_error") + np.abs(wanted).max() / 64
        assert np.all(np.abs(found - wanted) < 4 * error)


def test_what_attention_refuses():
    x = jnp.ones((1, 2, 3))
    with pytest.raises(ValueError, match="grid with one dimension"):
        Architecture(Serial((Attention(None, None), GlobalAveragePool()))).kernel(x[None])
    with pytest.raises(ValueError, match="'standard' scaling"):
        Architecture(Serial((Attention(2, 2, 2), GlobalAveragePool())), "standard").kernel(x)
    with pytest.raises(ValueError, match=r"Attention\.heads = None"):
        Architecture(Serial((Attention(None, 1, 2), GlobalAveragePool()))).draw(
            jax.random.key(0), (2, 3)
        )
    with pytest.raises(ValueError, match=r"Attention\.heads = 0"):
        Attention(0, 1, 1)
