"""Examples in groups, and what a measurement may cost."""

import warnings
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

import orderparam as op
from orderparam.cli.commands import app
from orderparam.observables import Budget, similarity
from orderparam.observables.groups import group_codes, over_groups

GROUPS, SIZE = 20, 6


def _grouped(seed, width=5):
    rng = np.random.default_rng(seed)
    common = np.repeat(rng.normal(size=(GROUPS, width)), SIZE, axis=0)
    return common + rng.normal(size=(GROUPS * SIZE, width))


def test_independent_layers_of_grouped_examples():
    """Over groups the similarity is 0 on average and 5 % are significant; over examples it is 0.05
    and nine of ten are."""
    codes = group_codes(np.repeat(np.arange(GROUPS), SIZE), GROUPS * SIZE)
    measure, found, alarms = partial(similarity, draws=0), [], np.zeros(2)
    for seed in range(60):
        x, y = _grouped(2 * seed), _grouped(2 * seed + 1)
        grouped, plain = over_groups(measure, (x, y), codes, 19), similarity(x, y, draws=19)
        found.append((grouped.value, plain.value, grouped.low <= 0 <= grouped.high))
        alarms += grouped.p_value <= 0.05, plain.p_value <= 0.05
    values = np.array(found, float)
    error = values[:, 0].std() / 60**0.5
    assert abs(values[:, 0].mean()) < 4 * error < 0.03
    assert values[:, 1].mean() > 0.03
    assert values[:, 2].mean() > 0.85
    assert alarms[0] <= 9 < 40 <= alarms[1]


def test_a_similarity_of_one_over_groups():
    x = _grouped(0)
    codes = group_codes(np.repeat(np.arange(GROUPS), SIZE), len(x))
    found = over_groups(partial(similarity, draws=0), (x, x), codes, 19)
    assert found.value == pytest.approx(1)
    assert found.p_value == pytest.approx(1 / 20)
    assert "20 groups" in found.note


def test_groups_of_different_sizes_and_many_groups():
    x = _grouped(1)
    labels = np.minimum(np.arange(len(x)) // SIZE, 12)
    uneven = over_groups(partial(similarity, draws=0), (x, x), group_codes(labels, len(x)), 19)
    assert np.isnan(uneven.p_value)
    assert "groups of one size" in uneven.note
    assert len(np.unique(group_codes(np.arange(500) // 2, 500))) == 60
    for wrong, message in (
        (labels[:-1], "one label for each"),
        (labels // 6, "must be at least 8"),
    ):
        with pytest.raises(ValueError, match=message):
            group_codes(wrong, len(x))


def test_the_command_takes_groups_and_a_budget(tmp_path):
    x = _grouped(3)
    text = np.repeat(np.arange(GROUPS), SIZE)
    np.savez(tmp_path / "a.npz", h=x, y=x[:, 0], text=text)
    run = partial(CliRunner().invoke, app)
    words = ["inspect", str(tmp_path / "a.npz"), "--target", "y", "--groups", "text", "--quick"]
    ended = run([*words, "--out", str(tmp_path / "out")])
    assert ended.exit_code == 0, ended.output
    assert "over 20 groups of examples" in ended.stdout
    assert "\ntext" not in ended.stdout  # the labels are no layer
    for option, message in (("--memory", "memory = 0.5"), ("--minutes", "minutes = 0.0")):
        ended = run([*words, option, "0.5" if option == "--memory" else "0"])
        assert ended.exit_code == 2
        assert message in ended.output


def test_what_exceeds_the_budget_is_noted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    w = rng.normal(size=(3, 1))
    found = op.inspect(lambda w, x: x @ w, x, parameters=w, initial=w + 0.1)
    drift = next(one for one in found.network if one.name == "kernel drift")
    assert drift.note == "on 500 of 600 examples, by the budget"
    found = op.inspect(
        lambda w, x: x @ w, x, parameters=w, initial=w + 0.1, budget=Budget(minutes=1e-9)
    )
    assert any("directions" in one.note for one in found.network)
    assert Budget().exact(500, 10**6, 1)
    assert Budget(minutes=1000).examples > 500
    assert Budget(memory=1).sketched() == 2000


def test_repeated_examples_are_reported():
    """One row of a hundred may repeat another, and the rows of one layer; every second row is
    reported unless groups say which belong together."""
    x = np.random.default_rng(0).normal(size=(100, 4))
    y = x[:, 0]
    twice, one_more = np.repeat(x[:50], 2, axis=0), np.vstack([x[:-1], x[:1]])
    with pytest.warns(UserWarning, match="50 of 100 examples repeat another one"):
        op.inspect({"hidden": twice, "other": np.tanh(twice)}, targets=y, quick=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        op.inspect({"hidden": one_more, "other": np.round(x)}, targets=y, quick=True)
        labels = np.repeat(np.arange(50), 2)
        op.inspect({"hidden": twice}, targets=y, groups=labels, quick=True)
    with pytest.warns(UserWarning, match="50 of 100 examples repeat another one"):
        op.inspect(lambda w, x: x @ w, twice, y, parameters=np.eye(4), quick=True)
