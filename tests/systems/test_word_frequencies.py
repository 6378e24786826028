"""Frequencies of words: fits, vocabularies, and their exact means."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.word_frequencies import (
    RankLaw,
    ReadText,
    drawn_vocabulary,
    expected_vocabulary,
    fitted,
    fitted_text,
    read_vocabulary,
    refitted_law,
    shuffled_vocabulary,
)

TEXT = ReadText([0, 1, 0, 2, 3, 0, 1], [3, 7])


@pytest.mark.parametrize("method", ["likelihood", "squares"])
@pytest.mark.parametrize("window", [50.0, 5000.0])
def test_a_fit_returns_the_law_that_made_the_counts(method, window):
    counts = 1e6 * RankLaw(1.2, 5.0, types=5000).probabilities
    found = fitted(counts, jnp.asarray(window), method)
    assert found.converged
    np.testing.assert_allclose([found.exponent, found.offset], [1.2, 5.0], rtol=1e-4)
    assert abs(found.divergence) < 1e-10


def test_vocabularies_against_another_program():
    """20 000 types, a = 1.05, b = 2.7."""
    for drawn, wanted in ((1e5, 13136.5), (1e6, 19968.3)):
        found = expected_vocabulary(RankLaw(drawn=drawn)).distinct
        np.testing.assert_allclose(found, wanted, atol=0.05)


def test_drawn_vocabularies_meet_their_mean():
    system = RankLaw(drawn=20_000)
    theory = expected_vocabulary(system)
    runs = [drawn_vocabulary(system, jax.random.key(seed)) for seed in range(24)]
    for name in ("distinct", "once"):
        found = np.array([getattr(run, name) for run in runs])
        error = found.std(ddof=1) / np.sqrt(24)
        assert abs(found.mean() - getattr(theory, name)) < 4 * error


@pytest.mark.parametrize("read", [1, 3, 5, 7])
def test_shuffled_words_are_all_subsets(read):
    words = np.asarray(TEXT.words).astype(int)
    subsets = [words[list(chosen)] for chosen in combinations(range(7), read)]
    counts = [np.bincount(one, minlength=4) for one in subsets]
    found = shuffled_vocabulary(TEXT.with_(share=read / 7))
    np.testing.assert_allclose(found.distinct, np.mean([np.sum(c > 0) for c in counts]), rtol=1e-9)
    np.testing.assert_allclose(found.once, np.mean([np.sum(c == 1) for c in counts]), atol=1e-9)


def test_documents_of_single_words_are_read_as_shuffled_ones():
    words = np.repeat(np.arange(50), np.arange(50, 0, -1))
    system = ReadText(words, np.arange(1, len(words) + 1), share=0.1)
    runs = [read_vocabulary(system, jax.random.key(seed)).distinct for seed in range(64)]
    error = np.std(runs, ddof=1) / 8
    assert abs(np.mean(runs) - shuffled_vocabulary(system).distinct) < 4 * error


def test_the_bias_of_a_refit_falls_with_the_number_of_words():
    """1 % at 3e4 words, less than 0.1 % at 3e6, and many times its error in between."""
    apart = []
    for drawn in (3e4, 3e6):
        runs = [refitted_law(RankLaw(drawn=drawn), jax.random.key(seed)) for seed in range(8)]
        apart.append(np.mean([run.exponent for run in runs]) - 1.05)
    assert -0.025 < apart[0] < -0.005
    assert abs(apart[1]) < 1e-3


def test_ranks_of_the_law_leave_no_bias_wherever_they_are_cut():
    """The same words, ranked by their counts, have a bias of 1 %."""
    system = RankLaw(drawn=1e5)
    for cut in ("counts", "law"):
        known = [
            refitted_law(system, jax.random.key(seed), ranks="law", cut=cut).exponent
            for seed in range(16)
        ]
        error = np.std(known, ddof=1) / 4
        assert abs(np.mean(known) - 1.05) < 4 * error
        assert 4 * error < 0.01


def test_a_text_of_one_document_has_one_fit():
    law = np.repeat(
        np.arange(40), np.round(1e4 * np.asarray(RankLaw(types=40).probabilities)).astype(int)
    )
    system = ReadText(law, [len(law)], window=40)
    first, second = (fitted_text(system, jax.random.key(seed)) for seed in range(2))
    assert first.exponent == second.exponent
    np.testing.assert_allclose([first.exponent, first.offset], [1.05, 2.7], rtol=0.02)


def test_ends_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="must end at the number of words, 2"):
        ReadText([0, 1], [3])
