"""Studies: curves with facets, what is compared with what, and the folder that keeps it."""

import errno
import itertools
import json

import numpy as np
import pytest
from magnet import Paramagnet, exact, sampled

from orderparam.comparison import Curve, compare, load, study
from orderparam.comparison.registry import _registry
from orderparam.core.facets import agree
from orderparam.plotting import Panel
from orderparam.running.lock import alone
from orderparam.running.store import StoreError
from orderparam.running.sweep import sweep

FIELDS = (0.2, 1.0)


@pytest.mark.parametrize(
    ("build", "full", "message"),
    [
        (lambda seeds: [], {}, "study 'wrong-study': parameter 'seeds' needs a default"),
        (
            lambda seeds=1: [],
            {"seds": 2},
            r"no parameter 'seds' \(in gallery or full\); did you mean 'seeds'",
        ),
    ],
)
def test_a_study_whose_parameters_do_not_fit_is_refused_when_it_is_made(build, full, message):
    with pytest.raises(ValueError, match=message):
        study(
            "wrong-study", title="", source="", seconds=(1, 2), panels=[Panel("x", "y")], full=full
        )(build)


@pytest.fixture
def magnets():
    @study(
        "test-magnets",
        title="Paramagnets in two fields",
        source="Langevin 1905",
        seconds=(1, 2),
        observables=("magnetisation",),
        panels=[Panel("temperature", "magnetisation", by="field")],
        caption="{seeds} runs.",
    )
    def build(seeds: int = 4, label: str = "Monte Carlo"):
        over, measured = {"temperature": (1.0, 3.0)}, {"temperature": (1.5, 2.0)}
        curves = [Curve("no field", exact, Paramagnet(1.0, 0.0), over, baseline=True)]
        for field in FIELDS:
            system, facets = Paramagnet(1.0, field, 100), {"field": field}
            curves.append(Curve("exact", exact, system, over, facets=facets))
            curves.append(Curve(label, sampled, system, measured, seeds=seeds, facets=facets))
        return curves

    yield build
    _registry.pop("test-magnets")


def test_a_key_says_label_and_facets():
    curve = Curve(
        "theory",
        exact,
        Paramagnet(1.0),
        {},
        facets={"n_train": 50, "ridge": 1e-4, "loss": "square loss"},
    )
    assert curve.key == "theory, n train 50, ridge 0.0001, square loss"
    assert not curve.is_experiment


def test_facets_agree_on_the_names_that_both_carry():
    assert agree({"width": 5}, {"loss": "hinge"})
    assert agree({"width": 5, "loss": "hinge"}, {"loss": "hinge"})
    assert not agree({"width": 5, "loss": "hinge"}, {"width": 6, "loss": "hinge"})


def test_an_experiment_is_compared_with_the_theories_whose_facets_agree(magnets):
    found = compare(magnets)
    assert list(found.agreement) == ["Monte Carlo, field 0.2", "Monte Carlo, field 1"]
    table = found.agreement["Monte Carlo, field 1"]["magnetisation"]
    assert table["theory"].values.tolist() == ["no field", "exact, field 1"]
    assert table["baseline"].values.tolist() == [True, False]
    np.testing.assert_allclose(
        table["theory_value"].sel(theory="exact, field 1"), np.tanh(1 / np.array([1.5, 2.0]))
    )
    assert found.datasets["exact, field 1"]["temperature"].values.tolist() == [1.0, 1.5, 2.0, 3.0]


def test_curves_are_chosen_by_kind_and_facets(magnets):
    found = compare(magnets)
    assert len(found.curves()) == 5
    assert list(found.curves(field=0.2)) == ["exact, field 0.2", "Monte Carlo, field 0.2"]
    assert list(found.experiments(field=1.0)) == ["Monte Carlo, field 1"]
    assert list(found.theories()) == ["no field", "exact, field 0.2", "exact, field 1"]
    assert found.curves("theory", field=3.0) == {}


def test_a_folder_keeps_facets_agreement_and_all_that_a_figure_needs(magnets, tmp_path):
    found = compare(magnets, out=tmp_path / "result")
    again = load(tmp_path / "result")
    assert list(again.datasets) == list(found.datasets)
    for key, data in found.datasets.items():
        assert again.datasets[key].equals(data)
        for attribute in ("label", "facets", "kind", "baseline"):
            assert again.datasets[key].attrs[attribute] == data.attrs[attribute]
    for key, tables in found.agreement.items():
        for observable, table in tables.items():
            np.testing.assert_array_equal(again.agreement[key][observable]["z"], table["z"])
    record = json.loads((tmp_path / "result" / "summary.json").read_text())["agreement"][
        "Monte Carlo, field 1"
    ]
    assert [(entry["theory"], entry["baseline"]) for entry in record] == [
        ("no field", True),
        ("exact, field 1", False),
    ]
    assert len(again.figure().axes) == 1


def test_a_resumed_run_counts_the_time_of_the_points_that_it_found(magnets, tmp_path):
    first = compare(magnets, out=tmp_path / "r")
    (tmp_path / "r" / "summary.json").unlink()
    again = compare(magnets, out=tmp_path / "r")
    taken = sum(float(data["seconds"].sum()) for data in first.datasets.values())
    assert taken > 0
    assert again.summary["processor_seconds"] >= round(taken, 3)


def test_exchanged_curves_and_an_edited_summary_are_refused(magnets, tmp_path):
    """Of ten exchanged pairs all were believed, and so was another number in the summary."""
    compare(magnets, out=tmp_path / "r")
    curves = tmp_path / "r" / "result.zarr"
    for one, other in itertools.combinations(
        sorted(path for path in curves.iterdir() if path.is_dir()), 2
    ):
        exchange(one, other)
        with pytest.raises(
            StoreError, match=r"is not the curve .* that summary.json is about: put it back"
        ):
            load(tmp_path / "r")
        exchange(one, other)
    text = (tmp_path / "r" / "summary.json").read_text()
    for edited in (
        text.replace('"seeds": 4', '"seeds": 900'),
        text.replace('"checksum": "', '"checksum": "0'),
        "[]",
    ):
        (tmp_path / "r" / "summary.json").write_text(edited)
        with pytest.raises(
            StoreError, match=r"summary.json is damaged \(.*\): the same command writes it anew"
        ):
            load(tmp_path / "r")
    compare(magnets, out=tmp_path / "r")
    assert load(tmp_path / "r").parameters["seeds"] == 4


def test_a_run_that_another_process_fills_is_refused_before_anything_is_built(
    magnets, tmp_path, monkeypatch
):
    compare(magnets, out=tmp_path / "r")
    monkeypatch.setitem(magnets.__dict__, "build", lambda **_: pytest.fail("built"))
    with (
        alone(tmp_path / "r"),
        pytest.raises(
            StoreError, match=r"r is being filled by another process; wait until it ends"
        ),
    ):
        compare(magnets, out=tmp_path / "r")


def test_a_finished_run_that_can_only_be_read_is_shown_again(magnets, tmp_path, monkeypatch):
    import orderparam.plotting

    def refuse(figure, path):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    first = compare(magnets, out=tmp_path / "r")
    text = (tmp_path / "r" / "summary.json").read_text()
    monkeypatch.setattr(orderparam.plotting, "save", refuse)
    with pytest.warns(
        UserWarning, match="can only be read: its figure and summary stay as they were"
    ):
        again = compare(magnets, out=tmp_path / "r")
    assert all(again.datasets[key].equals(data) for key, data in first.datasets.items())
    assert (tmp_path / "r" / "summary.json").read_text() == text
    with pytest.raises(StoreError, match="cannot write"):
        compare(magnets, out=tmp_path / "new")


def exchange(one, other):
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def test_points_that_were_computed_again_are_not_those_of_the_summary(magnets, tmp_path):
    """Another run of the same study with the same numbers in other places."""
    compare(magnets, out=tmp_path / "r")
    store = tmp_path / "r" / "result.zarr" / "monte-carlo--field-1"
    (store / "status" / "c.0.0").unlink()
    with pytest.raises(StoreError, match="1 of 8 points are missing"):
        load(tmp_path / "r")
    curves = magnets.build()
    again = next(curve for curve in curves if curve.key == "Monte Carlo, field 1")
    sweep(again.fn, again.system, again.over, seeds=again.seeds, store=store)
    with pytest.raises(
        StoreError,
        match="if points of it were computed again, the same command writes the summary anew",
    ):
        load(tmp_path / "r")
    compare(magnets, out=tmp_path / "r")
    load(tmp_path / "r")


def test_an_error_of_a_library_while_curves_are_built_says_that_the_values_do_not_fit():
    @study("test-powers", title="", source="", seconds=(1, 2), panels=[Panel("x", "y")])
    def build(first: float = 1.0, shift: float = 0.0, seeds: int = 1):
        if first < 0:
            raise ValueError("first = -1: must be at least 0")
        temperatures = np.geomspace(first + shift, 9, 3)
        return [Curve("exact", exact, Paramagnet(1.0), {"temperature": temperatures})]

    try:
        message = (
            "test-powers with first = 0.0: no curve can be built from these values: first must be "
            "positive, like 1.0"
        )
        with pytest.raises(ValueError, match=message):
            compare(build, settings={"first": 0})
        with pytest.raises(ValueError, match=r"first = -1\.0: first = -1: must be at least 0"):
            compare(build, settings={"first": -1})
        with pytest.raises(ValueError, match=r"shift = -1\.0: .* values \(Geometric"):
            compare(build, settings={"shift": -1})
    finally:
        _registry.pop("test-powers")


@pytest.mark.parametrize("value", [-1, "-1"])
def test_a_negative_number_of_things_is_refused(magnets, value):
    """`rows[:-1]` would be all rows but one."""
    with pytest.raises(ValueError, match="parameter seeds = -1: must not be negative"):
        compare(magnets, settings={"seeds": value})


def test_curves_must_be_told_apart(magnets):
    with pytest.raises(ValueError, match="must differ in label or facets"):
        compare(magnets, settings={"label": "Exact"})


def test_a_study_is_drawn_in_one_way():
    for draw in ({}, {"panels": [Panel("x", "y")], "draw": print}):
        with pytest.raises(ValueError, match="either panels or draw"):
            study("test-none", title="t", source="s", seconds=(1, 2), **draw)


def test_the_size_of_the_gallery_has_sixteen_runs_and_what_it_changes():
    @study(
        "test-sizes",
        title="",
        source="",
        seconds=(1, 2),
        panels=[Panel("x", "y")],
        gallery={"dim": 5},
        full={"dim": 9},
    )
    def build(dim: int = 3, seeds: int = 4, many_seeds: int = 40):
        return []

    try:
        assert build.parameters() == {"dim": 3, "seeds": 4, "many_seeds": 40}
        assert build.parameters("gallery") == {"dim": 5, "seeds": 16, "many_seeds": 40}
        assert build.parameters("full") == {"dim": 9, "seeds": 4, "many_seeds": 40}
        assert build.parameters("gallery", {"seeds": "8"})["seeds"] == 8
        with pytest.raises(ValueError, match="size = 'large': must be one of quick, gallery, full"):
            build.parameters("large")
    finally:
        _registry.pop("test-sizes")
