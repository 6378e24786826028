"""The page that says how far theory and measurement of every study are apart."""

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import unchanged
from magnet import Paramagnet, exact, sampled
from scipy import stats

from orderparam.comparison import Curve, compare, studies, study
from orderparam.comparison.registry import _registry
from orderparam.plotting import Freehand, Panel

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))
record = importlib.import_module("_site.record")
state_of = importlib.import_module("_site.state")
page = importlib.import_module("agreement")
carry_records = importlib.import_module("carry_records")


def shown(finished):
    """The record of a finished study after its way through a file."""
    return json.loads(json.dumps(record.record(finished, "01234567", "A caption.")))


@pytest.fixture(scope="module")
def finished():
    """Measured at field 0.3 beside: that field (wrong at no point), a field of 2 (wrong at all),
    and no field for orientation."""
    temperatures = {"temperature": (1.0, 2.0, 3.0)}

    @study(
        "test-page",
        title="A magnet",
        source="Langevin 1905",
        seconds=(1, 2),
        observables=("magnetisation",),
        panels=[Panel("temperature", "magnetisation")],
        explained="The field is another one.",
    )
    def build(right: bool = True):
        wrong = Curve("twice", exact, Paramagnet(1.0, 2.0), temperatures)
        return [
            *([Curve("exact", exact, Paramagnet(1.0, 0.3), temperatures)] if right else []),
            wrong,
            Curve("no field", exact, Paramagnet(1.0, 0.0), temperatures, baseline=True),
            Curve("sampled", sampled, Paramagnet(1.0, 0.3, 100), temperatures, seeds=8),
        ]

    yield lambda **settings: compare("test-page", settings=settings, progress=False)
    _registry.pop("test-page")


def test_a_row_is_that_of_the_theory_that_agrees_at_most_points(finished):
    cells = page.row("test-page", shown(finished()), "The field is another one.").split(" | ")
    assert cells[0] == "| `test-page`"
    assert cells[1:5] == ["quick", "exact", "8", ""]
    resolution, beyond, rms_z, probability, median, worst = cells[5:11]
    assert beyond == "0 of 3"
    assert 0 < float(rms_z) < 3
    assert record.BY_CHANCE < float(probability) <= 1
    assert 0 < float(resolution.removesuffix(" %")) < 100
    assert 0 < float(median.removesuffix(" %")) <= float(worst.removesuffix(" %"))
    assert cells[-1] == " |"  # nothing to explain


def test_a_bound_is_named_only_where_no_other_theory_stands_beside_the_measurement():
    """The bound at no field is never violated, and the field of 2 is wrong at every point."""
    temperatures = {"temperature": (1.0, 2.0, 3.0)}

    @study(
        "test-bound",
        title="A magnet",
        source="Langevin 1905",
        seconds=(1, 2),
        observables=("magnetisation",),
        panels=[Panel("temperature", "magnetisation")],
    )
    def build(theory: bool = True):
        wrong = Curve("twice", exact, Paramagnet(1.0, 2.0), temperatures)
        return [
            Curve("least", exact, Paramagnet(1.0, 0.0), temperatures, bound="lower"),
            *([wrong] if theory else []),
            Curve("sampled", sampled, Paramagnet(1.0, 0.3, 100), temperatures, seeds=8),
        ]

    try:
        both, alone = (
            shown(compare("test-bound", settings={"theory": each}, progress=False))["best"]
            for each in (True, False)
        )
    finally:
        _registry.pop("test-bound")
    assert (both["theory"], both["beyond"]) == ("twice", 3)
    assert (alone["theory"], alone["beyond"], alone["points"]) == ("least (lower bound)", 0, 3)


def test_a_disagreement_stands_with_the_sentence_of_its_study(finished):
    wrong = finished(right=False)
    cells = page.row("test-page", shown(wrong), wrong.study.explained).split(" | ")
    assert (cells[2], cells[6]) == ("twice", "3 of 3")
    assert cells[-1] == "The field is another one. |"
    assert not page.unexplained(shown(wrong), wrong.study.explained)
    assert page.unexplained(shown(wrong), "")


def test_a_record_has_every_theory_beside_every_measurement(finished):
    kept = shown(finished())
    assert kept["points"]["theory"] == {"points": 9, "failed": 0, "unconverged": 0}
    assert kept["points"]["experiment"]["points"] == 24
    rows = {
        (one["theory"], one["baseline"]): (one["beyond"], one["points"])
        for one in kept["agreement"]
    }
    assert rows[("exact", False)] == (0, 3)
    assert rows[("twice", False)] == (3, 3)
    assert ("no field", True) in rows


def test_a_study_without_a_result_says_so():
    assert page.row("test-page", None, "").startswith("| `test-page` | not run |")


def test_the_gallery_keeps_a_picture_until_words_change(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "GALLERY", tmp_path)
    done = finished()
    folder = tmp_path / "test-page-01234567"
    compare("test-page", out=folder, progress=False)
    page.keep(done.study, folder)
    picture = tmp_path / "test-page.webp"
    assert 2_000 < picture.stat().st_size <= record.BYTES
    assert page.kept("test-page")["state"] == "01234567"
    before = picture.stat().st_mtime_ns
    page.keep(done.study, folder)
    assert picture.stat().st_mtime_ns == before
    (folder / "summary.json").write_text((folder / "summary.json").read_text() + "\n")
    page.keep(done.study, folder)
    assert picture.stat().st_mtime_ns > before


def test_a_full_size_is_kept_beside_the_gallery(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "GALLERY", tmp_path)
    known = [finished().study]
    assert "## At full size" not in "\n".join(page.page(known))
    folder = tmp_path / "test-page-01234567"
    compare("test-page", size="full", out=folder, progress=False)
    page.keep(*known, folder)
    assert {one.name for one in (tmp_path / "full").iterdir()} == {
        "test-page.webp",
        "test-page.json",
    }
    assert page.kept("test-page") is None
    assert page.kept("test-page", "full")["size"] == "full"
    assert page.is_recorded("test-page", "full", "01234567")
    assert not page.is_recorded("test-page", "gallery", "01234567")
    table = "\n".join(page.page(known)).partition("## At full size")[2]
    assert "| `test-page` | full | exact | 8 |" in table


def test_a_result_of_this_code_comes_before_newer_ones_of_other_code(tmp_path):
    for folder in ("one-two-01234567", "one-89abcdef", "one-01234567", "one-half"):
        (tmp_path / folder).mkdir()
        failed = "1" if folder == "one-half" else "0"
        (tmp_path / folder / "summary.json").write_text(f'{{"curves": [{{"failed": {failed}}}]}}')
    assert page.newest(tmp_path, "one", "89abcdef").name == "one-89abcdef"
    assert page.newest(tmp_path, "one", "fedcba98").name == "one-01234567"
    assert page.newest(tmp_path, "none", "89abcdef") is None


@pytest.mark.parametrize(
    ("beyond", "points", "by_chance"),
    [(1, 40, True), (1, 3, False), (3, 1000, True), (12, 1000, False)],
)
def test_what_chance_explains(beyond, points, by_chance):
    """P(at least one of 40 beyond three) = 10 %, of three 0.8 %; at least 3 of 1000 47 %, at least
    12 of 1000 2e-5."""
    z = np.repeat([4.0, 0.8], [beyond, points - beyond])
    one = record.Agreement("", z, *np.zeros((3, 0)), independent(points))
    assert one.beyond == beyond
    assert one.by_chance is by_chance


def independent(points):
    """Deviations of so many runs that no two points have the same."""
    return tuple(np.eye(points))


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.0])
def test_a_shift_of_all_points_is_no_chance_though_none_is_beyond_three(shift):
    """Twenty independent points within one standard error, and the same points shifted by one or
    two: sum z^2 is 7.4, 27.4 and 87.4."""
    z = np.abs(np.linspace(-1, 1, 20) + shift)
    one = record.Agreement("", z, *np.zeros((3, 0)), independent(20))
    assert one.beyond == 0
    assert one.independent == pytest.approx(20)
    assert one.probability == pytest.approx(stats.chi2.sf(20 * np.mean(z**2), 20))
    assert one.by_chance is (shift < 2)


def test_a_systematic_disagreement_needs_a_sentence(finished):
    shift = shown(finished())
    shift["best"] |= {"beyond": 0, "points": 20, "rms_z": 1.8, "by_chance": False}
    assert page.unexplained(shift, "")
    assert not page.unexplained(shift, "The field is another one.")
    assert page.row("test-page", shift, "").endswith("| **not explained** |")
    assert page.row("test-page", shift, "Another field.").endswith("| Another field. |")


def test_a_study_depends_on_the_definitions_that_it_reaches(tmp_path, monkeypatch):
    def write(path, text):
        (tmp_path / "orderparam" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "orderparam" / path).write_text(text)
        state_of.forget()
        return state_of.source_state("orderparam.spins.studies", "build")

    monkeypatch.setattr(
        state_of.orderparam, "__file__", str(tmp_path / "orderparam" / "__init__.py")
    )
    write(
        "spins/studies.py", "from orderparam.spins.theory import exact\nbuild = exact\nother = 1\n"
    )
    write(
        "spins/theory.py",
        "from orderparam import solve\nfrom orderparam.core.verb import theory\nexact = "
        "solve.root.bisect\n",
    )
    write("solve/__init__.py", "")
    before = write("solve/root.py", "bisect = 1\nother = 1\n")
    assert write("solve/root.py", "bisect = 1\nother = 2\n") == before
    assert (
        write(
            "spins/studies.py",
            "from orderparam.spins.theory import exact\nbuild = exact\nother = 2\n",
        )
        == before
    )
    assert write("one_step/theory.py", "other = 1\n") == before
    assert write("core/verb.py", "theory = 1\n") == before
    assert write("solve/root.py", "bisect = 2\n") != before


def test_a_study_does_not_depend_on_where_its_code_stands(tmp_path, monkeypatch):
    def state(**files):
        (tmp_path / "orderparam").mkdir(exist_ok=True)
        for name, text in files.items():
            (tmp_path / "orderparam" / f"{name}.py").write_text(text)
        state_of.forget()
        return state_of.source_state("orderparam.studies", "build")

    monkeypatch.setattr(
        state_of.orderparam, "__file__", str(tmp_path / "orderparam" / "__init__.py")
    )
    theory = "class Fields:\n    x = 1\ndef exact():\n    return Fields().x\n"
    study = "def build():\n    return exact()\n"
    parted = state(theory=theory, studies=f"from orderparam.theory import exact\n{study}")
    assert state(studies=f"{theory}{study}") == parted
    assert state(studies=f"{theory}{study}".replace("x = 1", "x = 2")) != parted


def test_a_study_does_not_depend_on_words(tmp_path, monkeypatch):
    code = """'''{words}.'''
@study("a", title="{words}")
def build(width={width}):
    '''{words}.'''
    if width < 0:
        raise ValueError(f"{words}, not {{other}}")
    return width, Box  # {words}
other = {other}
class Box:
    side = parameter("{words}", default={other})
"""
    (tmp_path / "orderparam").mkdir()
    monkeypatch.setattr(
        state_of.orderparam, "__file__", str(tmp_path / "orderparam" / "__init__.py")
    )

    def state(words, width, other=1):
        (tmp_path / "orderparam" / "studies.py").write_text(
            code.format(words=words, width=width, other=other)
        )
        state_of.forget()
        return state_of.source_state("orderparam.studies", "build")

    assert state("One", 10) == state("Two", 10) != state("Two", 11)
    assert state("One", 10, other=2) != state("One", 10)


def test_a_long_test_is_left_out_until_what_it_reaches_changes(tmp_path, monkeypatch):
    (tmp_path / "solve").mkdir()
    file = tmp_path / "solve" / "test_sums.py"
    monkeypatch.setattr(unchanged, "TESTS", tmp_path)
    monkeypatch.setattr(unchanged, "PASSED", tmp_path / "passed.txt")

    def state(text, function="solve/test_sums.py::test_sum"):
        file.write_text(text)
        state_of.forget()
        unchanged.state.cache_clear()
        unchanged._finds_by_name.cache_clear()
        return unchanged.state(function)

    text = "def total():\n    return 2\ndef test_sum():\n    assert total() == 2\n"
    before = state(text)
    name = "solve/test_sums.py::test_sum"
    unchanged.remember({name: True, "solve/test_sums.py::test_other": False}, {name: before})
    assert unchanged.known() == {name: before}
    assert state(f"# a comment\n{text}") == before
    assert state(text.replace("return 2", "return 1 + 1")) != before
    assert state(f"import subprocess\n{text}") is None
    unchanged.remember({name: False}, {name: before})
    assert unchanged.known() == {}


def test_unconverged_runs_and_coarse_ones_prove_nothing(finished):
    good = shown(finished())
    good["best"]["resolution"] = 0.02
    assert page.unproved(good) == ""
    good["points"]["experiment"]["unconverged"] = 3
    assert page.unproved(good).startswith("more than a tenth")
    assert "3 of 24" in page.row("test-page", good, "")
    coarse = shown(finished())
    coarse["best"]["resolution"] = 0.06
    assert page.unproved(coarse) == "resolution worse than 5 %"


@pytest.mark.parametrize("one_by_one", [True, False])
def test_metastable_runs_count_only_where_the_figure_shows_them_one_by_one(finished, one_by_one):
    said = {"metastable": "Spins never turn.", "coarse": "The sign suffices."}
    every_run = Freehand(lambda axes, comparison: None, one_by_one=one_by_one)
    before = _registry["test-page"]
    magnet = replace(before, panels=[every_run], **said)
    record_of_one = shown(finished())
    record_of_one["points"]["experiment"]["unconverged"] = 3
    _registry["test-page"] = magnet
    try:
        assert (page.unproved(record_of_one) == "") is one_by_one
        reserve = page.reserves(record_of_one, magnet)
        assert ("*Metastable*: Spins never turn." in reserve) is one_by_one
        assert ("**Unproved**" in reserve) is not one_by_one
        record_of_one["best"]["resolution"] = 0.06
        assert (
            "*Coarse*: The sign suffices." in page.reserves(record_of_one, magnet)
        ) is one_by_one
    finally:
        _registry["test-page"] = before


@pytest.mark.parametrize(
    "one", [one for one in studies().values() if one.metastable or one.coarse], ids=lambda s: s.name
)
def test_a_study_says_no_more_of_its_runs_than_its_record_needs(one):
    """A sentence on runs that did not converge, or on large errors, stands only where the record
    has them, and only beside a figure of all runs."""
    kept = page.kept(one.name)
    measured, resolution = kept["points"]["experiment"], kept["best"]["resolution"]
    if one.metastable:
        assert one.shows_runs(kept["parameters"])
        assert measured["unconverged"] > page.LARGEST_SHARE * measured["points"]
    if one.coarse:
        assert resolution > page.COARSEST


def test_a_repeated_measurement_counts_once(finished):
    done = finished()
    ((key, tables),) = done.agreement.items()
    _, _, column = next(record._columns(done, key, "magnetisation", tables["magnetisation"]))
    assert (
        record._pooled("exact", [column, column]).numbers()
        == record._pooled("exact", [column]).numbers()
    )


def test_what_a_figure_does_not_show_does_not_count(finished):
    assert record.drawn(finished()) == {"magnetisation"}


def test_a_picture_keeps_its_legend(tmp_path):
    """The legend stands above the axes, where a tight box around the layout would cut it off."""
    from PIL import Image

    words = SimpleNamespace(title="A magnet", caption="")
    finished = SimpleNamespace(study=words, parameters={})

    def height(with_legend):
        figure, axes = plt.subplots(figsize=(3, 2))
        axes.plot([0, 1], label="theory")
        if with_legend:
            legend = figure.legend(loc="lower center", bbox_to_anchor=(0.5, 1.1))
            legend.set_in_layout(False)
        path = tmp_path / "picture.webp"
        record._write(finished, figure, path, 600, 10**6)
        width, tall = Image.open(path).size
        return tall / width

    assert height(True) > height(False) + 0.05


def test_a_change_of_equal_numbers_carries_the_records_that_were_up_to_date(tmp_path):
    for name, state in {"moved": "aaaaaaaa", "stale": "99999999", "same": "cccccccc"}.items():
        shown = {"study": name, "state": state, "caption": "$d$ = 3. Marks: means."}
        text = json.dumps({**shown, "parameters": {"dim": 3}}, indent=1)
        (tmp_path / f"{name}.json").write_text(text + "\n")

    def codes(states, caption):
        return {name: {"state": state, "caption": caption} for name, state in states.items()}

    before = {"moved": "aaaaaaaa", "stale": "bbbbbbbb", "same": "cccccccc"}
    after = {"moved": "dddddddd", "stale": "eeeeeeee", "same": "cccccccc", "new": "ffffffff"}
    old, new = codes(before, "$d$ = {dim}."), codes(after, "$d$ = {dim}.")
    assert carry_records.carry(tmp_path, old, new) == ["moved"]

    def kept(field):
        records = tmp_path.glob("*.json")
        return {path.stem: json.loads(path.read_text())[field] for path in records}

    assert kept("state") == {"moved": "dddddddd", "stale": "99999999", "same": "cccccccc"}
    (tmp_path / "full").mkdir()
    (tmp_path / "stale.json").rename(tmp_path / "full" / "moved.json")
    full = codes({"moved": "99999999"}, "$d$ = {dim}.")
    assert carry_records.carry(tmp_path, full, new) == ["full/moved"]
    carried = json.loads((tmp_path / "full" / "moved.json").read_text())
    assert carried["state"] == kept("state")["moved"] == "dddddddd"
    again = {**new, "same": {"state": "cccccccc", "caption": "Dimension {dim}."}}
    assert carry_records.carry(tmp_path, new, again) == ["same"]
    assert kept("caption")["same"] == "Dimension 3. Marks: means."


@pytest.mark.parametrize(
    ("shown", "was", "now", "carried"),
    [
        ("A. Marks: means.", "A.", "A. B.", "A. B. Marks: means."),
        ("A. B. Marks: means.", "A. B.", "A.", "A. Marks: means."),
        ("Marks: means.", "", "B.", "B. Marks: means."),
        ("A. Marks: means.", "A.", "", "Marks: means."),
        ("C. Marks: means.", "A.", "B.", "C. Marks: means."),
    ],
)
def test_a_caption_is_carried_once(tmp_path, shown, was, now, carried):
    path = tmp_path / "one.json"
    text = {"state": "aaaaaaaa", "caption": shown, "parameters": {}}
    path.write_text(json.dumps(text, indent=1))
    before, after = ({"one": {"state": "aaaaaaaa", "caption": words}} for words in (was, now))
    for _ in range(2):
        carry_records.carry(tmp_path, before, after)
        assert json.loads(path.read_text())["caption"] == carried
