"""Attention as an index model against numbers computed elsewhere, with other programs."""

import numpy as np
import pytest

from orderparam.systems.attention import (
    SeenSequence,
    TiedAttention,
    attention_state,
    recovered_vector,
)


# (tokens, n/d): overlap; those further from 1 by 400 steps of an iteration, to four decimals
@pytest.mark.parametrize(
    ("tokens", "ratio", "overlap", "digits"),
    [
        (2, 0.25, 0.14222159, 1e-7),
        (2, 0.3, 0.26801095, 1e-6),
        (3, 0.15, 0.21491198, 1e-7),
        (2, 0.4, 0.59209676, 1e-4),
        (3, 0.2, 0.4370, 1e-4),
        (2, 0.45, 0.78702908, 1e-3),
        (3, 0.3, 0.88071337, 1e-3),
        (1, 1.0, 0.476357, 1e-4),
    ],
)
def test_overlaps(tokens, ratio, overlap, digits):
    found = recovered_vector(SeenSequence(ratio, tokens))
    assert found.converged
    np.testing.assert_allclose(found.overlap, overlap, rtol=0, atol=digits)


def test_full_recovery_of_phase_retrieval():
    """1.13 for the best algorithm (Barbier et al. 2019)."""
    np.testing.assert_allclose(
        recovered_vector(SeenSequence(1.0, 1)).full_threshold, 1.13, atol=3e-3
    )


# sample_ratio, branch: q, |m| or theta, V, test error, objective of an 8-node Gauss-Hermite rule
STATES = {
    (1.0, "positional"): (0.042309, 0.252586, 15.79864, 0.006619, 0.0021721),
    (2.0, "positional"): (0.049842, 0.260753, 11.06843, 0.006903, 0.0045179),
    (2.0, "semantic"): (0.114710, 0.158058, 12.69117, 0.002813, 0.0035909),
    (3.0, "semantic"): (0.143517, 0.184671, 8.575009, 0.001671, 0.0043538),
}


@pytest.mark.parametrize(("ratio", "branch"), STATES)
def test_states(ratio, branch):
    """Their accuracy is said to be 5 % in q and V, 2 % in m and in the error, 0.3 % in the
    objective, and 0.1 % for semantic states."""
    found = attention_state(TiedAttention(ratio), branch=branch)
    assert found.converged
    learned = found.positional_overlap if branch == "positional" else found.teacher_overlap
    values = (
        found.self_overlap,
        learned,
        found.cavity_variance,
        found.test_error,
        found.free_energy,
    )
    tolerances = (0.05, 0.02, 0.05, 0.02, 0.003) if branch == "positional" else (0.0015,) * 5
    for value, expected, tolerance in zip(values, STATES[ratio, branch], tolerances):
        np.testing.assert_allclose(value, expected, rtol=tolerance)


def test_a_published_table_at_two():
    """A public table of the same model: q .11415, theta .15856, error .00279; .05001, .2586,
    .00698."""
    found = attention_state(TiedAttention(2.0), branch="semantic")
    values = (found.self_overlap, found.teacher_overlap, found.test_error)
    np.testing.assert_allclose(values, (0.11415, 0.15856, 0.00279), rtol=0.01)
    found = attention_state(TiedAttention(2.0), branch="positional")
    values = (found.self_overlap, found.positional_overlap, found.test_error)
    np.testing.assert_allclose(values, (0.05001, 0.2586, 0.00698), rtol=0.03)
