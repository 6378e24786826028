"""The plane in which two layers adapt to their target."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import xarray as xr

from orderparam.analysis.phases.study import diagram_curve, phases_panel
from orderparam.comparison import Curve, between, study
from orderparam.plotting import Panel
from orderparam.systems.kernel_adaptation.network import hermite_target
from orderparam.systems.kernel_adaptation.two_layers.gaussian_weights import gaussian_weights
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.studies import GAUSSIAN
from orderparam.systems.kernel_adaptation.two_layers.theory import adapted_weights

# Where the weights of a two-layer network adapt to its target, and where two states coexist.


def _other_minimum(data: xr.Dataset) -> xr.DataArray:
    """True if Gaussian weights are in the minimum of large variance; the theory without the
    Gaussian ansatz has only one state."""
    return (data["spread"] > 6) & (data.attrs["label"] == GAUSSIAN)


@study(
    "adaptation-plane",
    title="Gaussian weights adapt to a cubic target discontinuously, weights of any distribution "
    "continuously",
    source="Rubin, Seroussi, Ringel 2024, arXiv 2310.03789",
    seconds=(60, 900),
    full={"resolution": 32, "points": 200},
    panels=[
        phases_panel(
            "n_train",
            "temperature",
            log="xy",
            order="spread",
            title="Gaussian weights",
            part="plane",
        ),
        Panel(
            "temperature",
            "spread",
            by="n_train",
            where={"part": "cut"},
            log="xy",
            jump=_other_minimum,
        ),
    ],
    caption="""
        Theories of erf units, $d$ = {input_dim} inputs, $N$ = {width} units, $n$ examples of $y =
        h_3$, averaged over data. Spread: variance of the weights along the target over that of the
        prior. Left: state of lowest action of the Gaussian ansatz. Right: this ansatz (VGA) jumps
        where the theory of the full distribution (GMFL) does not. The study adaptation-hysteresis
        has networks at $n$ = 400.
    """,
)
def adaptation_plane(
    resolution: int = 8,
    input_dim: int = 50,
    width: int = 80,
    readout_variance: float = 0.04,
    cuts: tuple[float, ...] = (300.0, 450.0, 800.0),
    points: int = 80,
) -> Iterator[Curve]:
    target = hermite_target({3: 1.0}, normalised=True)
    temperatures = (0.02, 0.2)
    over = {"n_train": (250, 1000, "log"), "temperature": (*temperatures, "log")}
    system = TwoLayerNetwork(input_dim, width, 400, 0.1, target, readout_variance, modes=(1, 3))
    gaussian = partial(gaussian_weights, ridge_kind="effective")
    any_law = partial(adapted_weights, ridge_kind="effective")
    options: dict[str, Any] = {"accuracy": 1e-3, "branches": (), "batch": 16}
    yield diagram_curve(
        gaussian,
        system,
        over,
        order="spread",
        facets={"part": "plane"},
        resolution=resolution,
        **options,
    )
    grid = {"n_train": cuts, "temperature": between(temperatures, points)}
    facets = {"part": "cut"}
    yield Curve("adapted weights (GMFL)", any_law, system, grid, facets=facets)
    yield Curve(GAUSSIAN, gaussian, system, grid, facets=facets)
