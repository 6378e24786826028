"""A study of the paramagnet, for tests of the command line: `orderparam run
magnet_study.py:magnet`."""

from magnet import Paramagnet, exact, unhurried

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel


@study(
    "magnet",
    title="A paramagnet",
    source="Langevin 1905",
    seconds=(1, 1),
    observables=("magnetisation",),
    panels=[Panel("field", "magnetisation", by="temperature")],
)
def magnet(seeds: int = 20) -> list[Curve]:
    system, grid = Paramagnet(1.0), {"temperature": [0.5, 1.0, 2.0], "field": [0.1, 0.2]}
    return [
        Curve("exact", exact, system, grid),
        Curve("sampled", unhurried, system, grid, seeds=seeds),
    ]
