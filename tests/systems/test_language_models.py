"""Language models: counts of contexts, the division of the text, and networks that are trained."""

from collections import Counter, defaultdict
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.data.text import Corpus, numbered_bytes
from orderparam.systems.language_models import (
    LanguageTraining,
    counted_contexts,
    trained_language_model,
)
from orderparam.systems.language_models.networks import arrays, logits, parts, rates, spreads

RNG = np.random.default_rng(0)
TEXT = RNG.integers(0, 3, 400)
TEST = RNG.integers(0, 4, 70)
SMALL = LanguageTraining(TEXT, TEST, 4, n_train=300, context=8)


def counted_by_hand(text, test, symbols, context, order):
    """The same loss with dictionaries, byte by byte."""
    follows = [defaultdict(Counter) for _ in range(order + 1)]
    for length in range(order + 1):
        for end in range(length, len(text)):
            follows[length][tuple(text[end - length : end])][text[end]] += 1
    losses = []
    for begin in range(0, len(test) - context, context):
        window = test[begin : begin + context + 1]
        for at in range(1, context + 1):
            guess = 1 / symbols
            for length in range(min(order, at) + 1):
                seen = follows[length][tuple(window[at - length : at])]
                total, kinds = sum(seen.values()), len(seen)
                if total:
                    guess = (seen[window[at]] + kinds * guess) / (total + kinds)
            losses.append(-np.log(guess))
    return np.reshape(losses, (-1, context)).mean(0)


@pytest.mark.parametrize("order", [0, 1, 3, 6])
def test_counts_of_contexts_against_dictionaries(order):
    found = counted_contexts(SMALL, order=order)
    wanted = counted_by_hand(TEXT[:300].tolist(), TEST.tolist(), 4, 8, order)
    np.testing.assert_allclose(found.position_loss, wanted, rtol=1e-12)
    np.testing.assert_allclose(found.test_loss, wanted.mean(), rtol=1e-12)


def test_many_counts_give_the_entropy_of_a_markov_chain():
    chain = np.array([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5], [0.3, 0.3, 0.4]])
    jumps, state, text = RNG.random(60_000), 0, []
    for jump in jumps:
        state = int(np.searchsorted(np.cumsum(chain[state]), jump))
        text.append(state)
    system = LanguageTraining(text[:50_000], text[50_000:], 3, n_train=50_000)
    found = counted_contexts(system, order=1)
    pairs = Counter(pairwise(text[49_999:]))
    cross = -sum(n * np.log(chain[a, b]) for (a, b), n in pairs.items()) / 10_000
    assert abs(found.test_loss - cross) < 2e-3
    # longer contexts of a Markov chain tell no more
    longer = counted_contexts(system, order=3).test_loss
    assert abs(longer - found.test_loss) < 2e-3


def test_documents_are_on_one_side_only():
    documents = tuple(f"document {i} " * (i + 1) for i in range(30))
    divided = numbered_bytes(Corpus(documents, documents, 0, ""), test_bytes=500)
    alphabet = np.frombuffer(divided.alphabet, np.uint8)
    sides = [alphabet[part].tobytes() for part in (divided.text, divided.test_text)]
    for document in documents:
        assert sum(document.encode() + b"\0" in b"\0" + side for side in sides) == 1
    assert len(divided.text) + len(divided.test_text) == sum(len(d) + 1 for d in documents)
    with pytest.raises(ValueError, match="test_bytes = 900000"):
        numbered_bytes(Corpus(documents, documents, 0, ""), test_bytes=900_000)


@pytest.mark.parametrize("family", ["lstm", "transformer"])
def test_networks_are_causal_and_have_their_number_of_parameters(family):
    layout = parts(family, 16, 5, 12)
    weights = jnp.asarray(RNG.normal(size=len(spreads(layout))), jnp.float32) * 0.3
    read = jnp.asarray(RNG.integers(0, 5, (2, 12)))
    before = logits(family, arrays(layout, weights), read)
    after = logits(family, arrays(layout, weights), read.at[:, 7].set((read[:, 7] + 1) % 5))
    np.testing.assert_allclose(before[:, :7], after[:, :7], atol=1e-6)
    assert np.abs(before[:, 7:] - after[:, 7:]).min(-1).max() > 1e-4
    # the last position depends on the byte five places before it
    assert np.abs(before[:, -1] - after[:, -1]).max() > 1e-5
    system = SMALL.with_(symbols=5, width=16, family=family, context=12)
    outside = sum(
        np.prod(layout[name].shape) for name in ("embedding", "positions") if name in layout
    )
    assert float(system.parameters) == len(weights) - outside


def test_learning_rates_of_wide_layers():
    for width, factor in ((16, 1.0), (64, 0.25)):
        layout = parts("transformer", width, 5, 12)
        rate = arrays(layout, jnp.asarray(rates(layout, "mean-field", width)))
        assert set(np.unique(rate["read-out"])) | set(np.unique(rate["back"])) == {factor}
        assert set(np.unique(rate["embedding"])) | set(np.unique(rate["positions"])) == {1.0}
        assert set(rates(layout, "standard", width)) == {1.0}


@pytest.mark.parametrize("family", ["lstm", "transformer"])
def test_a_network_learns_what_only_a_memory_can_tell(family):
    """In this word of eight bytes, which repeats, each of the eight triples occurs once: one byte
    or two leave both symbols equally likely, and three decide."""
    word = np.array([0, 0, 1, 0, 1, 1, 1, 0])
    text = np.tile(word, 3000)
    system = LanguageTraining(
        text,
        text[:2000],
        2,
        n_train=20_000,
        epochs=6,
        family=family,
        context=15,
        learning_rate=0.02,
    )
    found = trained_language_model(system, jax.random.key(0))
    assert found.converged
    np.testing.assert_allclose(found.position_loss[:2], np.log(2), atol=0.03)
    # fewer than three bytes leave ln 2
    assert found.position_loss[4:].mean() < np.log(2) / 4
    np.testing.assert_allclose(
        counted_contexts(system, order=3).position_loss[:2], np.log(2), atol=0.01
    )
    again = trained_language_model(system, jax.random.key(0))
    assert float(again.test_loss) == float(found.test_loss)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"symbols": 3}, "text has the number 3: must be below symbols = 3"),
        ({"symbols": 300}, "symbols"),
        ({"test_text": [0, 1.5] * 80}, "test_text: the numbers of bytes must be integers"),
        ({"context": 400}, "text has 400 bytes: must have more than context = 400"),
        ({"n_train": 500}, "n_train = 500"),
    ],
)
def test_refusals(changes, words):
    with pytest.raises(ValueError, match=words):
        SMALL.with_(**changes)


@pytest.mark.parametrize("name", ["n_train", "epochs"])
def test_steps_of_an_array_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} is an array: steps need one number"):
        SMALL.with_(**{name: np.array([1.0, 2.0])}).steps  # noqa: B018


def test_widths_are_whole_heads():
    with pytest.raises(ValueError, match="multiple of 8"):
        trained_language_model(SMALL.with_(width=12), jax.random.key(0))
