"""Studies: curves with facets, what is compared with what, and the folder that keeps it."""

import json

import numpy as np
import pytest
from magnet import Paramagnet, exact, sampled

from orderparam.core.study import Curve, compare, load, study
from orderparam.core.study.curve import agree
from orderparam.core.study.registry import _registry
from orderparam.plotting import Panel

FIELDS = (0.2, 1.0)


@pytest.mark.parametrize(
    ("build", "full", "message"),
    [
        (lambda seeds: [], {}, "study 'wrong-study': parameter 'seeds' needs a default"),
        (lambda seeds=1: [], {"seds": 2}, r"no parameter 'seds' \(in full\); did you mean 'seeds'"),
    ],
)
def test_a_study_whose_parameters_do_not_fit_is_refused_when_it_is_made(build, full, message):
    with pytest.raises(ValueError, match=message):
        study("wrong-study", title="", source="", seconds=(1, 2), panels=[Panel("x", "y")], full=full)(build)


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
    curve = Curve("theory", exact, Paramagnet(1.0), {}, facets={"n_train": 50, "ridge": 1e-4, "loss": "square loss"})
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
    np.testing.assert_allclose(table["theory_value"].sel(theory="exact, field 1"), np.tanh(1 / np.array([1.5, 2.0])))
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
    record = json.loads((tmp_path / "result" / "summary.json").read_text())["agreement"]["Monte Carlo, field 1"]
    assert [(entry["theory"], entry["baseline"]) for entry in record] == [("no field", True), ("exact, field 1", False)]
    assert len(again.figure().axes) == 1


def test_curves_must_be_told_apart(magnets):
    with pytest.raises(ValueError, match="must differ in label or facets"):
        compare(magnets, settings={"label": "Exact"})


def test_a_study_is_drawn_in_one_way():
    for draw in ({}, {"panels": [Panel("x", "y")], "draw": print}):
        with pytest.raises(ValueError, match="either panels or draw"):
            study("test-none", title="t", source="s", seconds=(1, 2), **draw)
