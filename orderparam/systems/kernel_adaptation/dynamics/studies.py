"""Figures of training in time, and of what can be pruned from a trained network."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, between, study
from orderparam.data import load, subsample
from orderparam.data.tasks import one_hot
from orderparam.plotting import Freehand, Panel, vertical
from orderparam.plotting.measured import dots, mean_and_error
from orderparam.plotting.style import COLOURS, DASHES, GREY, ink
from orderparam.systems.kernel_adaptation.draw_readers import draw_learnability
from orderparam.systems.kernel_adaptation.dynamics.escape import (
    escaping_network,
    escaping_neurons,
)
from orderparam.systems.kernel_adaptation.dynamics.experiment import (
    langevin_training,
    pruned_classifier,
)
from orderparam.systems.kernel_adaptation.dynamics.model import Classifier
from orderparam.systems.kernel_adaptation.network import hermite_target
from orderparam.systems.kernel_adaptation.two_layers.densities import neurons_outside
from orderparam.systems.kernel_adaptation.two_layers.escape import escape_time
from orderparam.systems.kernel_adaptation.two_layers.experiment import FAR
from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import gaussian_process
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.theory import adapted_weights

# ------------------------------------------------------------------------------------------------
# Panels that show several observables on one set of axes: training in time with the equilibrium of
# the theory, and three ways of pruning.

H_2 = 2  # index of h_2 among the modes of relu units: h_0, h_1, h_2 and h_4


def _in_time(comparison: Comparison) -> tuple[xr.Dataset, xr.Dataset, dict[str, xr.Dataset]]:
    """The theory, the infinitely wide network, and the training runs by their labels."""
    theory, wide = comparison.theories().values()
    return theory, wide, {run.attrs["label"]: run for run in comparison.experiments().values()}


def _band(
    axes: Any, run: xr.Dataset, values: xr.DataArray, number: int, label: str, dash: Any = "-"
) -> None:
    """Draw the mean over seeds as a line, with its standard error as a band."""
    time = run["time"].values.reshape(-1, run.sizes["record"])[0]
    mean, error = (part.ravel() for part in mean_and_error(values))
    axes.plot(time, mean, color=COLOURS[number], linestyle=dash, label=label)
    axes.fill_between(
        time, mean - error, mean + error, color=COLOURS[number], alpha=0.25, linewidth=0
    )


def _bands(
    axes: Any, comparison: Comparison, of: Callable[[xr.Dataset, str], xr.DataArray]
) -> None:
    """Draw the bands of the values that `of` takes from the runs, on their training set ("train")
    and on fresh inputs ("test")."""
    runs = _in_time(comparison)[2]
    run, back = runs["from the prior"], runs["from the target"]
    shown = (
        (run, "train", "training set"),
        (run, "test", "fresh inputs"),
        (back, "test", "fresh, from the target"),
    )
    for number, (data, which, label) in enumerate(shown):
        _band(axes, data, of(data, which), number, label, DASHES[number])


def _over_time(axes: Any, loc: str = "upper left", **settings: Any) -> None:
    """Draw a legend inside the axes instead of one for the figure, because the meaning of colours
    differs between the axes."""
    handles, texts = axes.get_legend_handles_labels()
    axes.legend(handles, texts, fontsize=7, loc=loc)
    for handle in handles:
        handle.set_label("_")
    axes.set(xscale="log", xlabel="training time", **settings)


def _level(axes: Any, value: float, label: str, colour: str) -> None:
    axes.axhline(value, color=colour, linestyle=":", linewidth=1, label=label)


def draw_errors(axes: Any, comparison: Comparison) -> None:
    """Draw the errors on the training set and on fresh inputs for runs that start from the prior,
    and the error on fresh inputs for runs that start from the target."""
    _bands(axes, comparison, lambda data, which: data[f"{which}_error"])
    _over_time(axes, "lower left", yscale="log", ylim=(4e-3, None), ylabel="mean squared error")


def draw_component(axes: Any, comparison: Comparison) -> None:
    """Draw the target's component of the output, on the training set and on fresh inputs."""
    theory, wide, _ = _in_time(comparison)
    _bands(axes, comparison, lambda data, which: data[f"{which}_learnability"].isel(mode=H_2))
    _level(axes, float(theory["learnability"].isel(mode=H_2).item()), "theory", ink())
    _level(axes, float(wide["learnability"].isel(mode=H_2).item()), "infinitely wide", GREY)
    _over_time(axes, ylabel="learnability of $h_2$", ylim=(-0.05, 1.8))


def draw_specialised(axes: Any, comparison: Comparison) -> None:
    """Draw the number of neurons that have specialised to the target."""
    theory, _, runs = _in_time(comparison)
    _band(
        axes,
        runs["from the prior"],
        runs["from the prior"]["specialised"],
        1,
        "from the prior",
        DASHES[1],
    )
    _level(axes, neurons_outside(theory, comparison.parameters["width"]).item(), "theory", ink())
    above = 1.4 * axes.get_ylim()[1]  # room for the legend
    _over_time(axes, ylabel=f"neurons with $|w\\cdot w_*| > {FAR:g}$", ylim=(0, above))


def draw_selections(axes: Any, comparison: Comparison) -> None:
    """Draws the accuracy of the most adapted network when only some directions are kept: the
    leading ones, the units of the largest read-out, or random ones."""
    trained = next(
        data for data in comparison.curves().values() if data.attrs["label"] == "trained"
    )
    at = trained.isel(chi=-1)
    rank = at["rank"].values.reshape(-1, at.sizes["kept"])[0]
    names = {
        "": "leading directions",
        "magnitude_": "units of largest read-out",
        "random_": "random directions",
    }
    for number, (name, label) in enumerate(names.items()):
        dots(
            axes,
            rank,
            at[f"{name}accuracy"],
            number,
            label,
            colour=COLOURS[3 + number],
            linestyle="-",
            filled=number == 0,
        )
    axes.set(xscale="log", xlabel="directions or units kept $k$", ylim=(0, 1))


def draw_read(axes: Any, comparison: Comparison) -> None:
    """Draws the learnability of the labels from the kept directions, for every strength of
    adaptation."""
    trained = next(
        data for data in comparison.curves().values() if data.attrs["label"] == "trained"
    )
    rank = np.nanmax(trained["rank"].values.reshape(-1, trained.sizes["kept"]), axis=0)
    strengths = range(trained.sizes["chi"])
    draw_learnability(axes, rank, [(trained.isel(chi=at), COLOURS[at]) for at in strengths])


@study(
    "grokking",
    title="A wide network fits its training set first and generalises later, as its features "
    "adapt; from two starts it ends with one test error",
    source="Rubin, Seroussi, Ringel 2024, arXiv 2310.03789; Kumar, Bordelon, Gershman, Pehlevan "
    "2024, arXiv 2310.06110",
    panels=[Freehand(draw) for draw in (draw_errors, draw_component, draw_specialised)],
    caption="Relu network of $N$ = {width} hidden units with weights $w$ and read-outs $a$, $d$ = "
    "{input_dim} inputs, $n$ = {n_train} examples. The target is $h_2(w_*\\cdot x)$, the "
    "normalised second Hermite polynomial of one direction. Langevin dynamics with weight decay "
    "and one learning rate, temperature $T$ = {temperature}; prior variance of $\\sqrt{{N}}a$ "
    "{readout_variance}, $E|w|^2$ = 1. One unit of time is the relaxation time of the read-out "
    "under its weight decay alone. Means of {seeds} runs; bands are standard errors. Dotted: the "
    "theory of the equilibrium, averaged over data. Learnability of $h_2$: the coefficient of the "
    "output on it.",
    seconds=(50, 3600),
    observables=("output",),
    explained="Networks from both starts end near a learnability of 0.66, where the theory, which"
    " is averaged over data, has 0.81; from the prior they end with 20 specialised neurons, where "
    "it has 16. The number of units is not the cause, which leaves the average over data: sampled "
    "on 16 data sets networks learn 0.674(23), and on the same sets networks with twice the units, "
    "for which the theory is the same, 0.0054(6) less, so that with infinitely many units these "
    "sets would give 0.663(24).",
    gallery={"duration": 30.0, "seeds": 16},
    full={
        "input_dim": 40,
        "width": 600,
        "n_train": 320,
        "readout_variance": 0.3,
        "duration": 60.0,
        "step": 0.0002,
        "seeds": 8,
    },
)
def grokking(
    input_dim: int = 24,
    width: int = 240,
    n_train: int = 190,
    temperature: float = 0.02,
    readout_variance: float = 0.4,
    duration: float = 6.0,
    step: float = 0.0003,
    seeds: int = 4,
) -> Iterator[Curve]:
    target = hermite_target({2: 1.0}, normalised=True)
    system = TwoLayerNetwork(
        input_dim, width, n_train, temperature, target, readout_variance, activation="relu"
    )
    here, training = (
        {"n_train": [n_train]},
        partial(langevin_training, duration=duration, step=step, records=150, one_rate=True),
    )
    effective, fixed = (
        partial(theory, ridge_kind="effective") for theory in (adapted_weights, gaussian_process)
    )
    yield Curve("adapted weights", effective, system, here)
    yield Curve("infinitely wide (GP)", fixed, system, here, baseline=True)
    yield Curve("from the prior", training, system, here, seeds=seeds)
    yield Curve("from the target", partial(training, start="informed"), system, here, seeds=seeds)


# ------------------------------------------------------------------------------------------------
# The time in which neurons cross their barrier.


def _barrier(data: xr.Dataset) -> xr.DataArray:
    """The barrier in theory at every temperature."""
    barrier = data["barrier"]
    return barrier.mean("seed") if "seed" in barrier.dims else barrier


def draw_ratios(axes: Any, comparison: Comparison) -> None:
    """Draw measured times and other formulas over the first-passage time of the theory."""
    (theory,) = comparison.theories().values()
    x = _barrier(theory)
    axes.axhline(1.0, color=GREY, linewidth=0.8)
    kramers = theory["kramers_time"] / theory["time"]
    axes.plot(x, kramers, color=ink(), linestyle="--", label="Kramers")
    axes.plot(x, theory["recrossing"], color=ink(), linestyle=":", label="no recrossing")
    for number, data in enumerate(comparison.experiments().values()):
        expected = theory["time"].sel(temperature=data["temperature"], method="nearest").values
        ratio = data["time"].where(data["converged"]) / xr.DataArray(expected, dims="temperature")
        place = _barrier(data) + 0.06 * (number - 1)
        dots(axes, place, ratio, number, data.attrs["label"])
    axes.set(xlabel="barrier of one neuron / $T$", ylabel="time / theory", ylim=(0, None))


@study(
    "escape-times",
    title="Neurons that are sent back after they cross a barrier of 1.1 to 3.7 temperatures need "
    "0.98 to 1.14 of the time in theory; where they stay, others need longer at high barriers",
    source="Rubin, Seroussi, Ringel 2024, arXiv 2310.03789; Kramers 1940; Langer 1969",
    panels=[
        Panel(
            ("barrier of one neuron / $T$", _barrier),
            "time",
            log="y",
            ylabel="time of one neuron",
        ),
        Freehand(draw_ratios),
    ],
    caption=r"""
        Erf units, $d$ = {input_dim}, $N$ = {width}, $y = h_3(w_*\cdot x)$, the third Hermite
        polynomial; Langevin dynamics on the population loss $\frac{{n}}{{2}} E(f - y)^2$ with $n$ =
        {n_train} at $NT$ = {temperatures}; variance of $\sqrt{{N}}a$ {readout_variance}$/N$,
        $E|w|^2$ = 1; hidden weights $w$ relax {hidden_rate} times as fast as read-outs $a$, whose
        relaxation time is the unit. Barrier: $\log p(0)/p(b)$ of the density $p$ of $\rho = w\cdot
        w_*$ in a network that has not specialised, with its first minimum $b$; it grows with $T$.
        The time is that in which a neuron goes from the centre to where $p = p(0)$ behind the
        barrier. Neurons that have crossed go back to the centre, but for the diamonds: there they
        stay, and a run ends after the first {first}. Independent neurons are in the field of the
        theory, those of networks in the field of all others. Right: times over the theory, marks
        beside one another; dashed: Kramers' formula for high barriers; dotted: if read-outs and the
        other components of the weights followed $\rho$ at once.
    """,
    seconds=(60, 900),
    observables=("time",),
    explained=(
        "Independent neurons need 0.93(3), 0.91(3), 0.96(4) and 0.90(3) of the time in theory at "
        "barriers of 1.1, 1.9, 2.8 and 3.7. The factor for neurons that cross back is that of high "
        "barriers, and without it the theory would be 0.71 to 0.77 times as large; it causes the "
        "deviation: in a control at the barrier of 1.9 they need 0.97(4) and 1.01(3) (two step "
        "sizes) where hidden weights are 0.02 times as fast and fewer cross back, and 0.92(3) with "
        "a shorter step at 0.1. Networks whose neurons are sent back need 1.00(5), 0.98(7), "
        "1.01(7) and 1.14(7). Where neurons stay beyond the barrier they change the field of the "
        "others, which the theory leaves out: the first two need 1.0(2), 0.9(2), 1.2(4) and "
        "3.9(1.7) times as long, and at a barrier of 2.8 the first eight took 2.9(6) times as long "
        "(16 runs, not drawn)."
    ),
    coarse=(
        "Over the measured barriers the time grows by a factor of 18; errors of networks are 5 to "
        "7 % of it where neurons are sent back."
    ),
    gallery={"temperatures": (0.15, 0.27, 0.4, 0.55), "crossings": 16, "seeds": 16},
    full={
        "temperatures": (0.15, 0.27, 0.4, 0.55, 0.7),
        "width": 1000,
        "crossings": 50,
        "first": 4,
        "seeds": 32,
    },
)
def escape_times(
    input_dim: int = 100,
    width: int = 320,
    n_train: int = 1000,
    readout_variance: float = 0.032,
    temperatures: tuple[float, ...] = (0.15, 0.27),
    hidden_rate: float = 0.1,
    first: int = 2,
    crossings: int = 8,
    seeds: int = 4,
) -> Iterator[Curve]:
    """`temperatures` and `readout_variance` are those of one unit, times the width. crossings: the
    number of crossings of a network whose neurons go back; `first` of one whose neurons stay."""
    system = TwoLayerNetwork(
        input_dim,
        width,
        n_train,
        1 / width,
        hermite_target({3: 1.0}, normalised=True),
        readout_variance / width,
    )
    measured = {"temperature": [t / width for t in temperatures]}
    line = {"temperature": between([t / width for t in temperatures], 16)}
    theory = partial(escape_time, hidden_rate=hidden_rate, ridge_kind="bare")
    neurons = partial(escaping_neurons, hidden_rate=hidden_rate, crossings=4 * crossings)
    network = partial(escaping_network, hidden_rate=hidden_rate)
    returned = partial(network, crossings=crossings, returned=True)
    stay = partial(network, crossings=first)
    yield Curve("first-passage time", theory, system, line)
    yield Curve("independent neurons", neurons, system, measured, seeds)
    yield Curve("network, neurons sent back", returned, system, measured, seeds)
    yield Curve(f"network, first {first} neurons", stay, system, measured, seeds)


def digits(n_train: int, n_test: int) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Data x, y, x_test, y_test of scikit-learn's digits. Inputs are centred and scaled by one
    factor, both from the training set; targets are one-hot minus 1/10."""
    data = subsample(load("digits"), n_train + n_test, 0)
    x = data.inputs - data.inputs[:n_train].mean(axis=0)
    x = x / np.sqrt(np.mean(x[:n_train] ** 2))
    y = one_hot(data.labels, zero_mean=True).values
    return (
        jnp.asarray(x[:n_train]),
        jnp.asarray(y[:n_train]),
        jnp.asarray(x[n_train:]),
        jnp.asarray(y[n_train:]),
    )


def _pruning_panels(p: Mapping[str, Any]) -> list[Panel | Freehand]:
    classes = vertical(9)
    return [
        Panel(
            "rank",
            "accuracy",
            by="chi",
            log="x",
            xlabel="directions kept $k$",
            ylabel="test accuracy",
        ),
        Freehand(draw_selections, f"trained, $\\chi$ = {p['chis'][-1]:g}"),
        Panel(
            ("order", lambda data: np.arange(1, data.sizes["direction"] + 1)),
            "eigenvalues",
            by="chi",
            log="xy",
            ylabel="latent eigenvalue / trace",
            ylim=(1e-5, 1),
            reference=[classes],
        ),
        Freehand(draw_read, "Gaussian process on leading directions"),
    ]


@study(
    "latent-pruning",
    title=(
        "A network with strong feature learning keeps its accuracy with ten of 128 directions of "
        "its latent kernel; the rest can be pruned"
    ),
    source="Seroussi, Naveh, Ringel 2023, arXiv 2112.15383; Chizat, Oyallon, Bach 2019",
    panels=_pruning_panels,
    columns=2,
    caption=r"""
        Digits 8 x 8, {n_train} training and {n_test} test examples; two hidden layers of {width}
        relu units, one-hot targets, temperature {temperature}$/\chi$, read-out variance $1/\chi$:
        the larger $\chi$, the more features are learned. Latent kernel: second moments of the
        activations of the last hidden layer over training examples. It is pruned to the $k$ leading
        directions, to random ones or to the units of largest read-out, without retraining; {seeds}
        networks on one split. Blue squares and dashed: features of the start. Dotted: number of
        classes minus one. Lower right: share of the test labels that the Gaussian process which
        reads the leading directions predicts; open, trained on the training set; filled, on as many
        images that have not trained the network, from one half of the test set and tested on the
        other; dashed, theory of the latter.
    """,
    seconds=(40, 400),
    observables=("accuracy",),
    explained=(
        "From two directions on the regression on images that have not trained the network is "
        "within 1.2 % of the theory at every strength of adaptation. At chi = 100 it learns "
        "0.852(1) of the labels from the ten leading directions and 0.902(1) from all 128; on the "
        "training images, which the features have fitted, 0.857(1) and 0.865(1)."
    ),
    gallery={"seeds": 16},
    full={"width": 512, "n_train": 1000, "n_test": 797, "seeds": 16, "steps": 4000},
)
def latent_pruning(
    width: int = 128,
    n_train: int = 300,
    n_test: int = 1000,
    chis: tuple[float, ...] = (1.0, 10.0, 100.0),
    temperature: float = 0.01,
    steps: int = 1000,
    seeds: int = 5,
) -> Iterator[Curve]:
    system = Classifier(*digits(n_train, n_test), width=width, temperature=temperature)
    trained = partial(pruned_classifier, steps=steps)
    yield Curve("trained", trained, system, {"chi": chis}, seeds=seeds)
    yield Curve(
        "features of the start",
        partial(trained, train_hidden=False),
        system,
        {"chi": [chis[0]]},
        seeds=seeds,
    )
