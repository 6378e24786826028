"""The table of starts: every system opens on a figure that moves, and on which theory and
measurement agree."""

import numpy as np
import pytest

pytest.importorskip("panel", reason="the extra explore is not installed")

from orderparam.core.registry import index
from orderparam.explore.address import read
from orderparam.explore.choose import THUMBNAILS, study_cards, system_cards
from orderparam.explore.figures import STORE, picture, stored_figures
from orderparam.explore.first_state import is_start, opened
from orderparam.explore.starts import EXPECTED, OTHERS, TABLE, FirstFigure, question_of, starts
from orderparam.explore.systems import about, experiments_of, kinds, theories_of, verbs

LARGEST = 450_000  # bytes of all pictures and stored figures
STANDARD_ERRORS = 4.0
RESOLUTION = 0.05, 0.02  # of the theory's value, of the range of the curve
MOVES = 0.03  # of its largest value, by which a curve at least changes along its axis
SIZES = ("input_dim", "width", "n_train", "channels", "neurons", "spins", "sites", "modes")


def deviation(x, rows, measured_x, mean, error) -> float:
    """How far marks are from a theory at the worst, in units of what is allowed; NaN where the
    theory has no value at them."""
    worst = np.nan
    for row, means, errors in zip(rows, mean, error):
        at = np.array([row[np.argmin(np.abs(x - place))] for place in measured_x])
        far = np.nanmax(row) - np.nanmin(row)
        allowed = (
            STANDARD_ERRORS * np.nan_to_num(errors)
            + RESOLUTION[0] * np.abs(at)
            + RESOLUTION[1] * far
        )
        share = np.abs(means - at) / allowed
        if np.isfinite(share).any():
            worst = np.fmax(worst, np.nanmax(share))
    return float(worst)


def assert_agrees(start: FirstFigure, x, curves, measured_x, mean, error) -> None:
    """What the table expects of theory and measurement; beside half of the marks at least there is
    a theory."""
    if not start.experiment or not start.theories or start.expect == "approximation":
        return
    if start.expect == "bound":
        (rows, *_) = curves.values()
        at = np.array([rows[0][np.argmin(np.abs(x - place))] for place in measured_x])
        assert (mean[0] - STANDARD_ERRORS * error[0] <= at).all()
        return
    shares = {name: deviation(x, rows, measured_x, mean, error) for name, rows in curves.items()}
    assert min(share for share in shares.values() if share == share) <= 1, shares
    known = [
        np.isfinite(row[np.argmin(np.abs(x - place))])
        for rows in curves.values()
        for row in rows
        for place in measured_x
    ]
    assert np.mean(known) >= 0.5


def test_every_name_in_the_table_exists():
    studies = {entry.name for entry in index() if entry.kind == "study"}
    for name, start in starts().items():
        assert name in kinds(), name
        assert question_of(name.partition(".")[0]) != OTHERS, name
        assert set(start.theories) <= set(theories_of(name)), name
        assert start.experiment in {"", *experiments_of(name)}, name
        assert start.study in {"", *studies}, name
        assert start.expect in EXPECTED, name
        assert start.theories or start.experiment, name
        shown = {
            key
            for verb in (*start.theories, start.experiment)
            if verb
            for one in verbs()[verb].results
            for key in one.dims()
        }
        assert set(start.show) <= shown, name
        for verb, options in start.options.items():
            assert verb in (*start.theories, start.experiment), (name, verb)
            assert set(options) <= set(verbs()[verb].options), (name, verb)
        assert start.sees.endswith("."), name
        assert "$" not in start.sees + start.title, name
        assert 20 < len(start.sees) < 240, name


def test_every_system_of_the_package_has_a_start_or_says_why_not():
    own = [name for name, kind in kinds().items() if kind.__module__.startswith("orderparam.")]
    for name in set(own) - set(starts()):
        with pytest.raises(ValueError, match=r"no slider makes|no number"):
            opened(name)


@pytest.mark.parametrize("name", stored_figures())
def test_the_stored_figure_moves_and_agrees(name):
    start, figure = starts()[name], stored_figures()[name]
    assert set(figure.curves) == set(start.theories)
    if start.theories:
        heights = np.concatenate([rows.ravel() for rows in figure.curves.values()])
        assert np.nanmax(heights) - np.nanmin(heights) >= MOVES * np.nanmax(np.abs(heights))
        assert np.isfinite(heights).mean() > 0.5
    # some experiments take many minutes: no marks of theirs come with the package
    if len(figure.mean):
        assert len(figure.measured_x) >= 2
        assert np.isfinite(figure.mean).any()
        assert_agrees(start, figure.x, figure.curves, figure.measured_x, figure.mean, figure.error)
    assert picture(start).startswith("<svg")
    assert "nan" not in picture(start)


def test_the_pictures_are_small():
    assert (
        STORE.stat().st_size
        + TABLE.stat().st_size
        + sum(one.stat().st_size for one in THUMBNAILS.iterdir())
        < LARGEST
    )


def test_every_start_and_every_study_has_a_card():
    systems = [card for group in system_cards() for card in group["cards"]]
    assert {card["name"] for card in systems} >= set(starts())
    assert all(card["title"] and card["text"] for card in systems if card["name"] in starts())
    assert all(card["picture"] for card in systems if card["name"] in stored_figures())
    studies = [card for group in study_cards() for card in group["cards"]]
    assert {card["name"] for card in studies} == {
        entry.name for entry in index() if entry.kind == "study"
    }
    assert not any("$" in card["title"] or "\\" in card["title"] for card in studies)


def test_what_a_system_says_of_itself_is_not_cut():
    class Student:
        """A student of a committee (Goldt et al. 2019; Veiga et al. 2022),
        with label noise.

        More on it.
        """

    assert (
        about(Student)
        == "A student of a committee (Goldt et al. 2019; Veiga et al. 2022), with label noise."
    )


def test_formulas_are_mathml_and_the_rest_is_text():
    from orderparam.explore.formulas import with_mathml, without_formulas

    assert with_mathml(r"a < b at $\alpha_c$").startswith("a &lt; b at <math")
    assert "<script" not in with_mathml("<script>$<script>$")
    assert without_formulas(r"ridge $\lambda$ = 1") == "ridge  = 1"


@pytest.mark.parametrize("name", starts())
def test_every_start_opens_as_the_table_says(name):
    start, state = starts()[name], opened(name)
    assert read(state.address) == state
    assert is_start(state)
    assert state.x in state.knobs
    assert set(start.knobs) <= set(state.knobs)
    assert state.show == start.show
    if name in stored_figures():
        assert np.array_equal(
            stored_figures()[name].x, [float(f"{value:.4g}") for value in state.grid]
        )
    if start.experiment:
        sizes = {key: state.value(key) for key in state.knobs if key.rpartition(".")[2] in SIZES}
        assert all(value <= 1e6 for value in sizes.values()), sizes


@pytest.mark.attack
@pytest.mark.parametrize("name", starts())
def test_theory_and_measurement_of_every_start_agree_when_done_again(name):
    from orderparam.explore.curves import entries
    from orderparam.explore.evaluate import curve
    from orderparam.running.estimate import estimate
    from orderparam.running.sweep import sweep

    start, state, kept = starts()[name], opened(name), stored_figures().get(name)
    shown = state.show[0]
    found = {one: curve(state, one, lambda: False).data for one in state.theories}
    curves = {one: np.array(entries(data[shown], state.x)) for one, data in found.items()}
    for one, rows in curves.items() if kept is not None else ():
        np.testing.assert_allclose(
            np.where(np.isfinite(kept.curves[one]), rows, np.nan),
            kept.curves[one],
            rtol=2e-3,
            atol=1e-9,
        )
    if start.experiment:
        fn = state.verb_with_options(state.experiment)
        data = sweep(fn, state.instance, {state.x: state.places}, seeds=state.seeds, progress=False)
        mean, error = (np.array(entries(one, state.x)) for one in estimate(data, shown))
        assert_agrees(start, np.array(state.grid), curves, np.array(state.places), mean, error)
