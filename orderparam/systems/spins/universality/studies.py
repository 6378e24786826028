"""The figure of universality: three Hamiltonians with the same exponents, and one with others."""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand
from orderparam.plotting.measured import dots, mean_and_error
from orderparam.plotting.style import COLOURS, GREY, MARKERS, ink
from orderparam.running.status import DONE
from orderparam.systems.spins.scalar_field.model import ScalarField
from orderparam.systems.spins.universality.experiment import critical_field, critical_potts
from orderparam.systems.spins.universality.model import PottsLattice
from orderparam.systems.spins.universality.theory import ising_universality

_OFFSETS = (-1.0, -0.5, 0.5, 1.0)  # from the critical coupling, in units of the range


class _Model(NamedTuple):
    """A Hamiltonian of the figure: its system at a given length, the field that is varied, the
    middle of the range of this field, the range times L at length L, and the exponent of the
    leading correction to scaling of its class, L^-correction."""

    system: Any
    measure: Any
    field: str
    middle: float
    reach: float
    correction: float = 7 / 4  # Ising: the regular part of the susceptibility against L^(7/4)


def _potts(reach: float, correction: float = 7 / 4, **fields: Any) -> _Model:
    """A Potts model about its critical coupling."""
    system = PottsLattice(1.0, 16, **fields)
    return _Model(system, critical_potts, "coupling", system.critical_coupling, reach, correction)


_MODELS = {
    "Ising": _potts(0.6),
    "next neighbours": _potts(0.25, diagonals=True),
    "scalar field": _Model(ScalarField(-1.0, 1.0, (16, 16)), critical_field, "mass", -3.824, 2.2),
    "three-state Potts": _potts(0.4, 4 / 5, states=3),  # Nienhuis 1982: the irrelevant operator
}
_CONTROL = "three-state Potts"
_SIZES = (2.0, 4.6, 7.2, 3.0)  # of the marks of each model at the smallest length, in points
_OBSERVABLES = ("squared_magnetisation", "structure_factor", "binder_slope")
_ETA_OF_POTTS = 4 / 15


class _Exponent(NamedTuple):
    """How the figure names an exponent, the observable that it belongs to, the name of its Ising
    value in the theory, and its value in the three-state Potts model."""

    label: str
    observable: str
    ising: str
    potts: float


_EXPONENTS = (
    _Exponent(r"$\eta$", "squared_magnetisation", "magnetisation_exponent", -_ETA_OF_POTTS),
    _Exponent(r"$2 - \eta$", "structure_factor", "structure_exponent", 2 - _ETA_OF_POTTS),
    _Exponent(r"$1/\nu$", "binder_slope", "slope_exponent", 6 / 5),
)


class AtCriticality(NamedTuple):
    """Values of one model for each seed at the coupling where its Binder ratio has the universal
    value. The control is evaluated at its critical coupling instead."""

    field: xr.DataArray
    values: xr.Dataset


def at_criticality(comparison: Comparison, model: str) -> AtCriticality:
    """Values of one model at criticality for each seed, from parabolas through all couplings whose
    run converged. Seeds with fewer than three such couplings at any length are left out. An
    observable is fitted against the Binder ratio of the same run, because the statistical
    deviations of the two are correlated. For the control the universal ratio is not known here, but
    the critical coupling is.
    """
    lattice, control = _MODELS[model], model == _CONTROL
    fields, found = [], []
    for length, runs in sorted(_runs(comparison, model).items()):
        coupling = runs[lattice.field].broadcast_like(runs["binder"])
        distance = coupling - lattice.middle if control else runs["binder"] - _universal(comparison)
        converged = runs["status"] == DONE
        reads = {name: xr.DataArray(np.log(np.abs(runs[name]))) for name in _OBSERVABLES}
        reads["place"] = coupling
        rows: dict[str, list[float]] = {name: [] for name in reads}
        for seed in range(runs.sizes["seed"]):
            used = converged.isel(seed=seed).values
            x = distance.isel(seed=seed).values[used]
            for name, values in reads.items():
                y = values.isel(seed=seed).values[used]
                rows[name].append(float(np.polyfit(x, y, 2)[-1]) if len(x) > 2 else np.nan)
        place = xr.DataArray(rows.pop("place"), dims="seed")
        logs = xr.Dataset({name: ("seed", row) for name, row in rows.items()})
        fields.append(place.expand_dims(length=[length]))
        found.append(logs.map(np.exp).expand_dims(length=[length]))
    critical = xr.concat(found, "length").dropna("seed")
    return AtCriticality(xr.concat(fields, "length").sel(seed=critical["seed"]), critical)


def _universal(comparison: Comparison, name: str = "binder") -> float:
    """A universal number of the Ising class, read from any theory curve, since all of them have the
    same value."""
    return float(next(iter(comparison.theories().values()))[name].values.ravel()[0])


def _runs(comparison: Comparison, model: str) -> dict[int, xr.Dataset]:
    """The runs of a model at all couplings, one data set for each length."""
    parts: dict[int, list[xr.Dataset]] = {}
    for data in comparison.experiments(model=model).values():
        parts.setdefault(data.attrs["facets"]["length"], []).append(data)
    field = _MODELS[model].field
    return {
        length: xr.concat(each, field, coords="minimal").sortby(field)
        for length, each in parts.items()
    }


def draw_collapsed(axes: Any, comparison: Comparison) -> None:
    """Draw Binder's ratio of all models and lengths against the distance from criticality times the
    slope of the ratio there. The size of a mark grows with the length. Marks of a model fit into
    those of the next one, and none is filled, so that none hides another."""
    for number, (model, lattice) in enumerate(_MODELS.items()):
        found = at_criticality(comparison, model)
        centre = float(found.field.isel(length=-1).mean())
        slopes = found.values["binder_slope"].mean("seed")
        sign = -1 if lattice.field == "mass" else 1  # a larger mass disorders
        for rank, (length, runs) in enumerate(sorted(_runs(comparison, model).items())):
            x = sign * (runs[lattice.field].values - centre) * float(slopes.sel(length=length))
            dots(
                axes,
                x,
                runs["binder"].transpose("seed", ...),
                number,
                None if rank else model,
                markersize=_SIZES[number] + 0.4 * rank,
                markerfacecolor="none",
                markeredgewidth=0.7,
                elinewidth=0.7,
                capsize=0,
                zorder=5 - number,
                **_look(model),
            )
    axes.axhline(_universal(comparison), color=GREY, linewidth=0.8, zorder=0)
    axes.set(xlabel="$(K - K_c)\\, dU/dK$", ylabel="Binder ratio $U$")


def draw_approach(axes: Any, comparison: Comparison) -> None:
    """Draw the exponent eta of every model, computed from the magnetisations at neighbouring
    lengths."""
    for number, model in enumerate(_MODELS):
        squared = at_criticality(comparison, model).values["squared_magnetisation"]
        logs = xr.DataArray(np.log(squared)).assign_coords(length=np.log(squared["length"].values))
        local = -logs.diff("length") / logs["length"].diff("length")
        middle = np.exp((logs["length"].values[1:] + logs["length"].values[:-1]) / 2)
        middle = middle * 1.04 ** (number - 1.5)  # side by side
        dots(axes, middle, local.transpose("seed", ...), number, **_look(model))
    axes.axhline(-_universal(comparison, "magnetisation_exponent"), color=ink(), linewidth=0.8)
    axes.axhline(_ETA_OF_POTTS, color=GREY, linewidth=0.8, linestyle="--")
    lengths = comparison.parameters["lengths"]
    axes.set(
        xscale="log",
        xlim=(min(lengths), max(lengths) if len(lengths) > 1 else 2 * max(lengths)),
        xlabel="mean of two lengths $L$",
        ylabel=r"$-d \ln \langle m^2 \rangle / d \ln L$",
    )


def exponent(lengths: np.ndarray, values: xr.DataArray, correction: float) -> tuple[float, float]:
    """The exponent p of values ~ L^p (1 + b L^-correction) over seeds, and half its 95 % interval;
    NaN with fewer than two lengths.

    Least squares of ln(values) over p, b and the amplitude, weighted by the standard errors (at
    least 0.1 % of the mean). With fewer than four lengths there is no b. Where the points scatter
    by more than their errors, the interval is widened by the square root of chi^2 per degree of
    freedom.
    """
    mean, error = mean_and_error(values)
    if len(lengths) < 2 or not np.all(mean > 0):
        return np.nan, np.nan
    columns = [np.log(lengths), np.ones(len(lengths)), lengths**-correction]
    design = np.stack(columns[: 3 if len(lengths) > 3 else 2], axis=1)
    weights = 1 / np.maximum(np.nan_to_num(error / mean), 1e-3)
    inverse = np.linalg.pinv(design * weights[:, None])
    fit = inverse @ (weights * np.log(mean))
    freedom = max(len(lengths) - len(fit), 1)
    scatter = np.sum((weights * (np.log(mean) - design @ fit)) ** 2) / freedom
    return float(fit[0]), float(1.96 * np.linalg.norm(inverse[0]) * max(1.0, scatter) ** 0.5)


def draw_exponents(axes: Any, comparison: Comparison) -> None:
    """Draw the fitted exponents of every model with their 95 % intervals, over those of the Ising
    class, and a dashed line at those of the Potts model."""
    values = {model: at_criticality(comparison, model).values for model in _MODELS}
    for place, each in enumerate(_EXPONENTS):
        ising = _universal(comparison, each.ising)
        for number, (model, lattice) in enumerate(_MODELS.items()):
            runs = values[model][each.observable]
            lengths = runs["length"].values.astype(float)
            power, half = exponent(lengths, runs.transpose("seed", ...), lattice.correction)
            axes.errorbar(
                place + 0.15 * (number - (len(_MODELS) - 1) / 2),
                power / ising,
                abs(half / ising),
                fmt=MARKERS[number],
                markerfacecolor="white",
                color=_look(model).get("colour", COLOURS[number]),
            )
        across = [place - 0.4, place + 0.4]
        axes.plot(across, [1, 1], color=ink(), linewidth=0.8, zorder=0)
        axes.plot(across, [each.potts / ising] * 2, "--", color=GREY, linewidth=0.8, zorder=0)
    axes.set(
        xticks=range(len(_EXPONENTS)),
        xticklabels=[each.label for each in _EXPONENTS],
        xlim=(-0.5, len(_EXPONENTS) - 0.5),
        ylabel="exponent / Ising exponent",
    )


def _look(model: str) -> dict[str, Any]:
    return {"colour": GREY} if model == _CONTROL else {}


@study(
    "universality",
    title=(
        "Two Ising models and a scalar field share their exponents and their curve of Binder "
        "ratios; the three-state Potts model has others"
    ),
    source="Luijten, Blöte, Binder 1996; Salas, Sokal 2000; Brower, Tamayo 1989",
    seconds=(60, 3600),
    observables=("binder", "relative_length"),
    gallery={
        "lengths": (16, 32, 64, 128),
        "sweeps": 1000,
        "control_lengths": (16, 32, 64),
        "control_sweeps": 3000,
        "seeds": 16,
    },
    full={
        "lengths": (16, 32, 64, 128),
        "sweeps": 10_000,
        "control_lengths": (16, 32, 64, 128),
        "control_sweeps": 30_000,
        "seeds": 16,
    },
    columns=3,
    panels=[
        Freehand(draw_collapsed),
        Freehand(draw_approach),
        Freehand(draw_exponents),
    ],
    explained=(
        "Fits to lengths of 16 to 128 with the leading correction give, for the Ising model, next "
        "neighbours and the scalar field, eta = 0.251(4), 0.253(9), 0.247(8) (exact 0.25), 2 - eta "
        "= 1.748(7), 1.751(12), 1.748(20) and 1/nu = 0.99(3), 0.973(26), 1.04(5) (exact 1; 95 % "
        "intervals). One of the nine, 1/nu of next neighbours, is off by 2.1 standard errors. "
        "Eleven of 1,200 runs did not converge and are in no fit. The "
        "control has eta = 0.262(7) and 1/nu = 1.24(4) (exact 0.267 and 1.2), without its "
        "correction, which falls only as L^(-4/5). From one length to the next, eta of the scalar "
        "field falls from 0.326(8) to 0.254(5) (standard errors). The collapse matches position "
        "and slope at the critical coupling, so that only the shape is tested there; at the known "
        "critical couplings of the two Ising models the ratio and the correlation length of "
        "length 128 lie within 0.4 % of the theory."
    ),
    caption=r"""
        $L\times L$ tori of four models: the Ising model with bonds to nearest neighbours, the Ising
        model whose next-nearest neighbours have the same coupling, a scalar field with $u = 1$, and
        as a control (grey) the three-state Potts model. $K$: coupling (of the field: minus its
        mass), $K_c$: its critical value, $m$: magnetisation, $U = 1 - \langle m^4\rangle/3\langle
        m^2\rangle^2$. The first three are evaluated where $U$ has its universal value (line), the
        control at its critical coupling. Left: the larger the mark of a model, the larger $L$. The
        smallest scalar fields still lie beside the line of the Ising class. Solid lines: the Ising
        class; dashed lines: the Potts model. Middle: $\eta$ from two neighbouring lengths; the
        marks of one pair stand beside one another. Right: exponents of $\langle m^2\rangle \sim
        L^{{-\eta}}$, of the structure factor at $2\pi/L$ and of $dU/dK$ with 95 % intervals, fitted
        to the lengths {lengths} (control: {control_lengths}); four lengths are fitted with the
        leading correction, $1 + b L^{{-7/4}}$ (Potts: $L^{{-4/5}}$). Each of {seeds} runs has
        {replicas} replicas of {sweeps} sweeps (control: {control_sweeps}).
    """,
)
def universality(
    lengths: tuple[int, ...] = (16, 32),
    replicas: int = 4,
    sweeps: int = 500,
    control_lengths: tuple[int, ...] = (16, 32),
    control_sweeps: int = 500,
    seeds: int = 4,
) -> Iterator[Curve]:
    for model, lattice in _MODELS.items():
        control = model == _CONTROL
        own = control_sweeps if control else sweeps
        measured = partial(lattice.measure, replicas=replicas, sweeps=own)
        for length in control_lengths if control else lengths:
            facets = {"model": model, "length": length}
            shape = {"shape": (length, length)} if lattice.field == "mass" else {"length": length}
            system = lattice.system.with_(**shape)
            for at, offsets in (("critical", (0.0,)), ("around", _OFFSETS)):
                values = tuple(lattice.middle + lattice.reach * u / length for u in offsets)
                place = facets | {"at": at}
                over = {lattice.field: values}
                yield Curve("clusters", measured, system, over, seeds, True, facets=place)
            if length == max(lengths) and model in ("Ising", "next neighbours"):
                over, place = {lattice.field: (lattice.middle,)}, facets | {"at": "critical"}
                yield Curve("large torus", ising_universality, system, over, facets=place)
