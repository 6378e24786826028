"""Draws that are made go on where they stopped, on the same code only."""

import pytest
from checks import Book, draw_options, draws_of

import orderparam as op
from orderparam.systems.spins import MeanFieldMagnet

SYSTEM = MeanFieldMagnet(0.5)


class Told:
    def __init__(self, **options):
        self.getoption = options.get


def made(system=SYSTEM, changed=True, draws=30):
    told = Told(**{"--changed": changed, "--remember": True})
    return Book.of(op.theories()["spins.mean_field"], system, 0, {}, draws, told)


@pytest.fixture(autouse=True)
def drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(draws_of, "DRAWN", tmp_path / "drawn.txt")


def test_draws_go_on_where_they_stopped():
    book = made()
    for number in (0, 1, 3):  # 2 was wrong
        book.right(number)
    assert made().draws.right == 2
    assert made(changed=False).draws.right == 0


def test_draws_of_another_example_or_number_begin_anew():
    made().right(0)
    assert made(system=SYSTEM.with_(field=0.1)).draws.right == 0
    assert made(draws=60).draws.right == 0


def test_every_word_of_an_option_is_drawn():
    """In about half of the choices an option has its usual value, and each of its words occurs."""
    theory = op.theories()["online_sgd.overlap_flow"]
    chosen = draw_options(theory, "online_sgd.overlap_flow CommitteeSGD", 12)
    for name in ("terms", "stiff"):
        values = [options[name] for options in chosen if name in options]
        words = theory.choices(name) or (False, True)
        assert {*values} == {*words}
        assert len(values) == 6
