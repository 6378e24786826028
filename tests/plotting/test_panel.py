"""Figures from facets: what is drawn, in which colour, and what is said about it."""

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import orderparam as op
from orderparam.plotting import (
    Freehand,
    Panel,
    curve,
    draw,
    horizontal,
    house_style,
    plot,
    save,
    slope,
    tex,
    vertical,
)
from orderparam.plotting.captions import filled
from orderparam.plotting.layout import wrapped
from orderparam.plotting.style import GREY
from orderparam.plotting.text import number, value_words, words
from orderparam.plotting.ticks import readable_ticks

N = np.array([10.0, 20.0, 40.0, 80.0])
POWERS = {1: -0.5, 2: -1.0}  # of the error against n, by width


def _curve(kind, width, seeds=4, **changes):
    """error = n^power for every n and layer; the layer multiplies it."""
    error = N[:, None] ** POWERS[width] * np.array([1.0, 3.0])
    dims, coords = ("n_train", "layer"), {"n_train": N}
    if kind == "experiment":
        scatter = 1 + 0.01 * np.random.default_rng(width).normal(size=(4, seeds, 2))
        error, dims, coords = (
            error[:, None] * scatter,
            ("n_train", "seed", "layer"),
            coords | {"seed": np.arange(seeds)},
        )
    status = np.ones(error.shape[:-1], np.int8)
    label = {"theory": "theory", "experiment": "measured"}[kind]
    attrs = {"label": label, "kind": kind, "facets": {"width": width}, "baseline": False}
    return xr.Dataset(
        {"error": (dims, error), "status": (dims[:-1], status)}, coords, attrs | changes
    )


@pytest.fixture
def comparison():
    datasets = {
        f"{kind} {width}": _curve(kind, width)
        for width in (1, 2)
        for kind in ("theory", "experiment")
    }
    yield SimpleNamespace(
        datasets=datasets, parameters={"dim": 3}, study=SimpleNamespace(title="Errors")
    )
    plt.close("all")


def _lines(axes, style=True):
    """The lines of theories, or the marks of measurements without the ends of their bars."""
    seen = [
        line
        for line in axes.get_lines()
        if np.size(line.get_xdata()) > 2 and line.get_marker() not in ("_", "|")
    ]
    return [line for line in seen if (line.get_linestyle() != "None") == style]


def test_one_colour_for_a_theory_and_its_measurement_in_all_panels(comparison):
    figure = draw(
        comparison,
        [
            Panel("n_train", "error", by="width", where={"layer": 0}, log="xy"),
            Panel("n_train", "error", facet="width", where={"layer": 1}, log="xy"),
        ],
    )
    both, first, second = figure.axes
    colours = [line.get_color() for line in _lines(both)]
    assert len(set(colours)) == 2
    assert [line.get_color() for line in _lines(both, False)] == colours
    for axes, colour in ((first, colours[0]), (second, colours[1])):
        assert {line.get_color() for line in (*_lines(axes), *_lines(axes, False))} == {colour}
    np.testing.assert_allclose(_lines(second)[0].get_ydata(), 3 / N)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "$N$ = 1",
        "$N$ = 2",
        "theory",
        "measured",
    ]


def test_a_dimension_may_be_told_apart_like_a_facet_and_counts_from_one(comparison):
    figure = draw(comparison, [Panel("n_train", "error", facet="width", by="layer")])
    first, _ = figure.axes
    np.testing.assert_allclose(
        [line.get_ydata()[0] for line in _lines(first)], np.array([1.0, 3.0]) / np.sqrt(10)
    )
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == ["$l$ = 1", "$l$ = 2"]
    assert first.get_title() == "$N$ = 1"


def test_a_name_may_stand_beside_its_line_instead_of_in_the_legend(comparison):
    panel = {"x": "n_train", "y": "error", "by": "width", "where": {"layer": 0}, "log": "xy"}
    names = {1: 20.0, 2: (40.0, "below")}
    layers = Panel(
        "n_train", "error", by="layer", where={"width": 1}, beside={1: (np.inf, "right")}
    )
    figure = draw(comparison, [Panel(**panel, beside=names), Panel(**panel), layers])
    first, second, third = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "$l$ = 1",
        "theory",
        "measured",
    ]
    above, below = first.texts
    assert not second.texts
    (right,) = third.texts  # the layer of index 1, not the width 1, which is written
    assert (right.get_text(), right.xy[0], right.get_ha()) == ("$l$ = 2", N[-1], "left")
    np.testing.assert_allclose(above.xy, (20.0, 20.0**-0.5))
    np.testing.assert_allclose(below.xy, (40.0, 1 / 40.0))
    assert (above.get_ha(), below.get_ha()) == ("left", "right")  # the lines fall
    assert [above.get_color(), below.get_color()] == [line.get_color() for line in _lines(first)]


def test_a_name_is_not_written_where_its_line_has_no_point(comparison):
    figure = draw(
        comparison,
        [Panel("n_train", "error", where={"width": 1, "layer": 0}, beside={"theory": 1000.0})],
    )
    assert not figure.axes[0].texts
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["theory", "measured"]  # no curve is without a name


def test_a_value_without_a_place_beside_its_line_is_in_the_legend(comparison):
    panel = Panel("n_train", "error", by="width", where={"layer": 0}, beside={1: 20.0, 2: 1000.0})
    figure = draw(comparison, [panel])
    (beside,) = figure.axes[0].texts
    assert beside.get_text() == "$N$ = 1"
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["$N$ = 2", "theory", "measured"]


def test_a_panel_may_choose_its_colours_and_leave_texts_out_of_the_legend(comparison):
    figure = draw(
        comparison,
        [
            Panel(
                "n_train",
                "error",
                by="width",
                where={"layer": 0},
                colours={1: "text", 2: "red"},
                text={1: "", "measured": ""},
            )
        ],
    )
    one, two = (line.get_color() for line in _lines(figure.axes[0]))
    assert (one, two) == (plt.rcParams["text.color"], "red")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["$N$ = 2", "theory"]


def test_without_by_labels_have_colours_and_measurements_the_colour_of_text(comparison):
    with house_style():
        figure = draw(comparison, [Panel("n_train", "error", where={"width": 1, "layer": 0})])
    (axes,) = figure.axes
    assert (
        _lines(axes, False)[0].get_color()
        == plt.rcParamsDefault["text.color"]
        != _lines(axes)[0].get_color()
    )


def test_a_curve_without_the_facet_is_drawn_everywhere_and_a_baseline_is_grey(comparison):
    comparison.datasets["limit"] = _curve("theory", 1, label="limit", facets={}, baseline=True)
    figure = draw(comparison, [Panel("n_train", "error", facet="width", where={"layer": 0})])
    for axes in figure.axes:
        assert [line.get_color() for line in _lines(axes)].count(GREY) == 1
    assert "Thin grey: for orientation." in figure.texts[-1].get_text().replace("\n", " ")


def test_what_did_not_converge_is_left_out_of_a_line_and_of_a_mean_and_drawn_open(comparison):
    measured = comparison.datasets["experiment 1"]
    comparison.datasets["theory 1"]["status"][1] = 2
    comparison.datasets["experiment 1"]["status"][2, 0] = 2
    figure = draw(comparison, [Panel("n_train", "error", where={"width": 1, "layer": 0})])
    (axes,) = figure.axes
    np.testing.assert_array_equal(
        np.isnan(_lines(axes)[0].get_ydata()), [False, True, False, False]
    )
    (open_marks,) = [line for line in axes.get_lines() if line.get_color() == GREY]
    error = (
        measured["error"].sel(layer=0)
        if "layer" in measured.coords
        else measured["error"].isel(layer=0)
    )
    np.testing.assert_allclose(
        open_marks.get_ydata(), [np.nan, np.nan, error.isel(n_train=2, seed=0), np.nan]
    )
    means = _lines(axes, False)[0].get_ydata()
    np.testing.assert_allclose(means[2], error.isel(n_train=2)[1:].mean())
    assert "not converged" in [text.get_text() for text in figure.legends[0].get_texts()]
    caption = figure.texts[-1].get_text().replace("\n", " ")
    assert "means of 3 to 4 runs" in caption
    assert f"the 1 of {measured['status'].size} runs that did not converge" in caption


@pytest.mark.parametrize("jump", ["phase", lambda data: data["phase"] > 0])
def test_a_line_is_interrupted_at_a_jump(comparison, jump):
    comparison.datasets["theory 1"]["phase"] = ("n_train", [0, 0, 1, 1])
    figure = draw(
        comparison,
        [Panel("n_train", "error", where={"kind": "theory", "width": 1, "layer": 0}, jump=jump)],
    )
    np.testing.assert_array_equal(
        np.isnan(_lines(figure.axes[0])[0].get_ydata()), [False, False, True, False, False]
    )


def test_a_point_alone_between_two_jumps_is_marked(comparison):
    comparison.datasets["theory 1"]["phase"] = ("n_train", [0, 0, 1, 2])
    figure = draw(
        comparison,
        [Panel("n_train", "error", where={"kind": "theory", "width": 1, "layer": 0}, jump="phase")],
    )
    (marks,) = [line for line in figure.axes[0].get_lines() if line.get_marker() == "."]
    assert np.isfinite(marks.get_ydata()).sum() == 2


def test_a_ratio_is_taken_to_the_curve_of_the_same_facets(comparison):
    figure = draw(
        comparison, [Panel("n_train", "error", by="width", where={"layer": 1}, ratio_to="theory")]
    )
    (axes,) = figure.axes
    assert not _lines(axes)
    for marks in _lines(axes, False):
        np.testing.assert_allclose(marks.get_ydata(), 1.0, atol=0.05)
    with pytest.raises(ValueError, match="'nothing'"):
        draw(
            comparison,
            [Panel("n_train", "error", by="width", where={"layer": 1}, ratio_to="nothing")],
        )


@pytest.mark.parametrize("limit", [False, True], ids=["curve", "limit"])
def test_a_ratio_may_be_drawn_along_a_quantity_that_falls_along_the_grid(comparison, limit):
    for data in comparison.datasets.values():
        if limit and data.attrs["kind"] == "theory":
            data["error"][:] = 0.1
    panel = Panel(
        ("1/n", lambda data: 1 / data["n_train"]),
        "error",
        by="width",
        where={"layer": 1},
        log="x",
        ratio_to="theory",
    )
    (axes,) = draw(comparison, [panel]).axes
    drawn = _lines(axes, False)
    assert len(drawn) == 2
    for marks, width in zip(drawn, (1, 2), strict=True):
        expected = 3 * N ** POWERS[width] / 0.1 if limit else np.ones(4)
        np.testing.assert_allclose(marks.get_ydata(), expected, rtol=0.05)


def test_facets_in_a_row_share_the_y_axis_unless_told_otherwise(comparison):
    limits = []
    for share in (True, False):
        figure = draw(
            comparison,
            [Panel("n_train", "error", facet="width", where={"layer": 0}, share_y=share)],
        )
        limits.append([axes.get_ylim() for axes in figure.axes])
        assert [axes.get_ylabel() == "" for axes in figure.axes] == [False, True]
    assert limits[0][0] == limits[0][1]
    assert limits[1][0] != limits[1][1]


def test_a_topic_with_another_convention_says_it_on_its_axes(comparison):
    for data in comparison.datasets.values():
        data.attrs["function"] = "orderparam.systems.online_sgd.theory.overlap_flow()"
        data["test_error"] = data["error"]
    figure = draw(comparison, [Panel("n_train", "test_error", by="width", where={"layer": 0})])
    assert figure.axes[0].get_ylabel() == words("test_error", "online_sgd") != words("test_error")


def test_axes_may_be_functions_of_the_data(comparison):
    scaled = ("$n/d$", lambda data: data["n_train"] / 5)
    figure = draw(
        comparison,
        [Panel(scaled, ("twice", lambda data: 2 * data["error"]), by="width", where={"layer": 0})],
    )
    (axes,) = figure.axes
    np.testing.assert_allclose(_lines(axes)[1].get_xydata(), np.column_stack([N / 5, 2 / N]))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("$n/d$", "twice")


def test_measured_power_laws_are_fitted_beside_their_theory(comparison):
    figure = draw(
        comparison, [Panel("n_train", "error", by="width", where={"layer": 0}, log="xy", fit="n")]
    )
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert [text.partition("[")[2] for text in texts] == ["-0.50]", "-1.00]"]
    assert [float(text[4:9]) for text in texts] == pytest.approx([-0.5, -1.0], abs=0.02)


def test_a_fit_up_to_some_x_leaves_out_what_lies_beyond(comparison):
    """Two fits of points that bend at 40: only that of the first two has the exponent -1/2."""

    def bent(data):
        return data["error"] * (1 + 5 * (data["n_train"] > 30))

    shown = {"by": "width", "where": {"layer": 0, "width": 1, "kind": "experiment"}, "log": "xy"}
    exponents = []
    for most in (np.inf, 20.0):
        panel = Panel("n_train", ("bent", bent), fit="n", fit_to=most, **shown)
        figure = draw(comparison, [panel])
        legend = figure.axes[0].get_legend()
        text = legend.get_texts()[0].get_text()
        exponents.append(float(re.findall(r"-?[0-9.]+", text)[0]))
    assert legend.get_title().get_text() == r"fit, $n \leq 20$"
    assert exponents[0] > 0
    assert exponents[1] == pytest.approx(-0.5, abs=0.02)


def test_guides_lie_where_they_are_said_to_lie(comparison):
    lines = [horizontal(lambda width: 0.1 * width), vertical(30.0, "here")]
    guides = [*lines, slope(-1.0, through=(20.0, 1.0)), curve(lambda x: 1 / x)]
    figure = draw(
        comparison,
        [Panel("n_train", "error", facet="width", where={"layer": 0}, log="xy", reference=guides)],
    )
    level, place, law, known = [
        line for line in figure.axes[1].get_lines() if line.get_color() == GREY
    ]
    assert level.get_ydata()[0] == pytest.approx(0.2)
    assert place.get_xdata()[0] == 30.0
    np.testing.assert_allclose(law.get_ydata(), 20.0 / law.get_xdata())
    np.testing.assert_allclose(known.get_ydata(), 1 / known.get_xdata())


def test_what_is_drawn_by_hand_stands_among_the_panels_and_enters_the_legend(comparison):
    drawn = Freehand(
        lambda axes, finished: axes.plot([0, finished.parameters["dim"]], [0, 1], label="by hand"),
        "free",
    )
    figure = draw(
        comparison,
        [drawn, Panel("n_train", "error", by="width", where={"layer": 0})],
        caption="$d$ = {dim}.",
    )
    assert figure.axes[0].get_title() == "free"
    assert [text.get_text() for text in figure.legends[0].get_texts()][-1] == "by hand"
    assert figure.texts[0].get_text() == "Errors"
    said = figure.texts[1].get_text().replace("\n", " ")
    assert said == "$d$ = 3. Lines: theory. Marks: means of 4 runs, bars: standard errors."


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        (Panel("n_train", "error"), "along layer is neither x nor by nor in where"),
        (Panel("n_train", "loss", where={"layer": 0}), "no curve of this study has 'loss'"),
        (
            Panel("n_train", "error", where={"depth": 1}),
            "no curve has a facet or dimension 'depth'",
        ),
        (
            Panel("n_train", "error", facet="depth", where={"layer": 0}),
            "no curve has a facet or dimension 'depth'",
        ),
        (
            Panel("depth", "error", where={"layer": 0}),
            "neither a dimension nor an observable 'depth'",
        ),
    ],
)
def test_names_that_no_curve_has_are_refused(comparison, panel, message):
    with pytest.raises(ValueError, match=message):
        draw(comparison, [panel])


def test_plot_takes_sweeps_as_they_are(comparison):
    theory, runs = (
        comparison.datasets[f"{kind} 1"].isel(layer=0) for kind in ("theory", "experiment")
    )
    axes = plot(theory.drop_attrs(), runs.drop_attrs(), y="error")
    assert len(_lines(axes)) == len(_lines(axes, False)) == 1
    with pytest.raises(ValueError, match="it has: error, status"):
        plot(theory, y="loss")
    with pytest.raises(ValueError, match="name the axis"):
        plot(theory.expand_dims(width=[1, 2]), y="error")


def test_a_saved_figure_is_there_twice_and_dark_ones_are_dark(comparison, tmp_path):
    with house_style(dark=True):
        figure = draw(comparison, [Panel("n_train", "error", by="width", where={"layer": 0})])
    assert max(figure.get_facecolor()[:3]) < 0.2
    assert figure.axes[0].xaxis.label.get_color() == "0.9"
    assert sorted(path.name for path in save(figure, tmp_path / "figure")) == [
        "figure.pdf",
        "figure.png",
    ]


def test_numbers_and_names_as_people_read_them():
    assert [number(value) for value in (0.25, 1e-5, 3e12, 40, float("inf"))] == [
        "0.25", "$10^{-5}$", r"$3\cdot10^{12}$", "40", r"$\infty$",
    ]  # fmt: skip
    assert words("n_train") == "training examples $n$"
    assert words("some.new_name") == "new name"
    assert "1}{2}" in words("test_error", "online_sgd")
    assert "1}{2}" not in words("test_error", "one_step")
    assert value_words("width", 50) == "$N$ = 50"
    assert value_words("loss", "hinge") == "hinge"
    assert value_words("target", "z1**2") == "$y = z_{1}^{2}$"


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("z1/3 + 2*z1*z2/3", r"z_{1}/3 + 2z_{1}\,z_{2}/3"),
        ("-He3(z)/sqrt(6)", r"-\mathrm{He}_{3}(z)/\sqrt{6}"),
        ("(z1 - z2)**2/2", "(z_{1} - z_{2})^{2}/2"),
        ("z1 - (z2 + 1)", "z_{1} - (z_{2} + 1)"),
        ("z/(2*z)", "z/(2z)"),
        ("sign(z1*z2)*abs(z)", r"\mathrm{sign}(z_{1}\,z_{2})|z|"),
        ("erf(z/sqrt(2)) + tanh(2*z)", r"\mathrm{erf}(z/\sqrt{2}) + \tanh(2z)"),
    ],
)
def test_target_formulas_are_typeset(formula, expected):
    assert tex(formula) == expected


@pytest.mark.parametrize("formula", ["z1 +", "z1 if z2 else 0", "[z1]"])
def test_what_is_no_formula_is_not_typeset(formula):
    with pytest.raises(ValueError, match="is not a formula"):
        tex(formula)


def test_captions_take_their_numbers_from_the_parameters():
    parameters = {"ridge": 1e-4, "widths": (10, 20), "dim": 100, "name": "erf"}
    text = filled("{name}, $d$ = {dim}, $N$ = {widths}, ridge {ridge:g}, $x_{{1}}$", parameters)
    assert text == "erf, $d$ = 100, $N$ = 10, 20, ridge 0.0001, $x_{1}$"
    with pytest.raises(KeyError):
        filled("{width}", parameters)


def test_a_caption_has_no_orphan_and_whole_formulas():
    figure = plt.figure()
    text = "the theory of the test error of a network with $N = 50$ hidden units and erf"
    for width in np.linspace(1.5, 4.0, 11):
        lines = wrapped(figure, text, float(width), 9).split("\n")
        assert " ".join(lines) == text
        assert all(line.count("$") % 2 == 0 for line in lines)
        assert len(lines) == 1 or len(lines[-1].split()) > 1
    plt.close(figure)


@pytest.mark.parametrize("limits", [(9.0, 900.0), (0.21, 0.34), (1e-12, 1e4)])
def test_ticks_of_logarithmic_axes_are_numbers_that_find_topic(limits):
    figure, axes = plt.subplots(figsize=(3.4, 2.6))
    axes.set(xscale="log", xlim=limits)
    readable_ticks(axes)
    figure.canvas.draw()
    shown = [
        text.get_text()
        for at, text in zip(axes.get_xticks(), axes.get_xticklabels())
        if limits[0] <= at <= limits[1]
    ]
    assert 2 <= len([text for text in shown if text]) <= 9
    plt.close(figure)


def test_a_quantity_has_the_symbol_of_its_own_topic():
    assert words("correlation", "spins") == r"correlation $\langle s_0 s_r\rangle$"
    assert words("correlation", "random_networks") == "correlation"
    assert value_words("steps", 3, "spins") == "$n$ = 3"
    assert value_words("steps", 3, "committee") == "steps 3"


def test_every_declared_label_is_of_a_name_in_its_topic():
    topics = Path(op.__file__).parent / "systems"
    declared = 0
    for init in topics.glob("*/__init__.py"):
        labels = getattr(
            importlib.import_module(f"orderparam.systems.{init.parent.name}"), "LABELS", {}
        )
        source = "".join(file.read_text() for file in init.parent.rglob("*.py") if file != init)
        declared += len(labels)
        for name in labels:
            assert re.search(rf"\b{re.escape(name)}\b", source), (init.parent.name, name)
    assert declared >= 60
