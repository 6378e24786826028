"""The named figures of deep linear networks in time."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel
from orderparam.systems.deep_linear.experiment import trained_layers, trained_modes
from orderparam.systems.deep_linear.model import DeepModes, LinearModes
from orderparam.systems.deep_linear.theory import deep_modes, lazy_to_rich_modes


def _marked(data: xr.Dataset, values: xr.DataArray) -> xr.DataArray:
    """Values at all records of a theory, which is drawn as a line, or at about twelve records of a
    measurement, which is drawn as marks."""
    if "seed" not in data.dims:
        return values
    last = data.sizes["record"] - 1
    return values.isel(record=np.unique(np.geomspace(1, last, 16).round().astype(int)))


TIME = ("training time $t$", lambda data: _marked(data, data["time"]))
OUTPUT = ("output of a mode", lambda data: _marked(data, data["output"]))
KERNEL = ("tangent kernel of a mode", lambda data: _marked(data, data["kernel"]))


STRENGTHS = (2.0, 1.0, 0.5)


@study(
    "linear-lazy-to-rich",
    title=(
        "The larger the tangent kernel at the start, the lazier is the training of wide linear "
        "networks; from a small one they train in the rich regime"
    ),
    source="derived here; Saxe, McClelland, Ganguli 2014 (arXiv:1312.6120); Dominé et al. 2025 "
    "(arXiv:2409.14623)",
    panels=[
        Panel(
            TIME,
            OUTPUT,
            facet="kernel_start",
            by="mode",
            where={"quantity": "modes"},
            log="x",
            beside=dict.fromkeys(range(3), 4.0),
            ylim=(-0.1, 2.3),
        ),
        Panel(
            TIME,
            KERNEL,
            facet="kernel_start",
            by="mode",
            where={"quantity": "modes"},
            log="xy",
            ylim=(0.008, 10),
        ),
        Panel(
            TIME,
            OUTPUT,
            facet="mode",
            by="width",
            where={"quantity": "widths"},
            log="x",
            ratio_to="theory",
            ylabel="output / theory",
            share_y=False,
        ),
    ],
    columns=3,
    caption=r"""
        Linear network with one hidden layer and {width} hidden units, wide random layers, gradient
        flow on whitened data; modes 1 to 3 of the target have the singular values 2, 1 and 1/2.
        $c$: tangent kernel of every mode at the start. At large $c$ all modes are learned after a
        time of about $1/c$ by a kernel that changes less: at $c$ = 4 that of mode 1 grows from 4 to
        5.7. At small $c$ they are learned one after the other, after $\ln(1/c)/(2s)$, where $s$ is
        the singular value, by kernels that grow to $2s$. Last row: outputs at $c$ = {rich} of
        networks of $N$ units over those of the theory.
    """,
    seconds=(40, 300),
    observables=("output", "kernel"),
    explained=(
        "At small outputs and errors, networks of 16 units differ from the theory by up to a "
        "third, with 256 units by up to 6 %; the strongest mode at the smallest c by 6 and 1 %. "
        "Once an output is learned up to a millionth, its error falls exponentially at a rate that "
        "differs between networks, so that a few networks dominate the mean."
    ),
    gallery={"width": 1024, "widths": (16, 64, 256), "seeds": 64},
    full={"width": 4096, "widths": (16, 64, 256, 1024), "seeds": 64},
)
def linear_lazy_to_rich(
    kernel_starts: tuple[float, ...] = (4.0, 0.3, 0.01),
    rich: float = 0.01,
    duration: float = 12.0,
    records: int = 120,
    width: int = 512,
    widths: tuple[int, ...] = (16, 64),
    seeds: int = 16,
) -> Iterator[Curve]:
    system = LinearModes(STRENGTHS, rich, duration, width=width, records=records)
    over, modes = {"kernel_start": kernel_starts}, {"quantity": "modes"}
    yield Curve("theory", lazy_to_rich_modes, system, over, facets=modes)
    yield Curve("network", trained_modes, system, over, seeds, batch_seeds=True, facets=modes)
    at, sizes = {"kernel_start": [rich]}, {"quantity": "widths"}
    yield Curve("theory", lazy_to_rich_modes, system, at, facets=sizes)
    for each in widths:
        yield Curve(
            "network",
            trained_modes,
            system.with_(width=each),
            at,
            seeds,
            batch_seeds=True,
            facets={**sizes, "width": each},
        )


@study(
    "linear-depth-in-time",
    title="In deeper linear networks the larger modes are learned in a steeper step",
    source="Saxe, McClelland, Ganguli 2014 (arXiv:1312.6120)",
    panels=[
        Panel(
            TIME,
            OUTPUT,
            facet="depth",
            by="mode",
            where={"misalignment": 0.02},
            log="x",
        ),
        Panel(
            TIME,
            ("loss / theory", lambda data: _marked(data, data["loss"])),
            facet="depth",
            by="misalignment",
            log="x",
            ratio_to="theory",
            ylabel="loss / theory",
        ),
    ],
    columns=3,
    caption=r"""
        Linear networks of $L$ = 2, 3 and 4 layers, gradient flow on whitened data from layers along
        the modes of the target (1 to 3: singular values 2, 1 and 1/2), output {start_output} at the
        start. Lines: layers exactly along the modes. Marks: networks whose layers have, in
        addition, a random part of a given relative size: 0.02 above, 0.02 and 0.1 below. Below:
        training loss over that of layers along the modes.
    """,
    seconds=(30, 200),
    observables=("output",),
    explained="The theory is for layers exactly along the modes: the difference is due to the "
    "random part.",
    gallery={"seeds": 64},
    full={"seeds": 256, "records": 200},
)
def linear_depth_in_time(
    depths: tuple[int, ...] = (2, 3, 4),
    start_output: float = 0.05,
    misalignments: tuple[float, ...] = (0.02, 0.1),
    duration: float = 12.0,
    records: int = 120,
    seeds: int = 16,
) -> Iterator[Curve]:
    for depth in depths:
        system = DeepModes(STRENGTHS, start_output, duration, depth=depth, records=records)
        facets = {"depth": depth}
        over = {"misalignment": misalignments}
        yield Curve("theory", deep_modes, system, over, facets=facets)
        yield Curve("network", trained_layers, system, over, seeds, batch_seeds=True, facets=facets)
