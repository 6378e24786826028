"""The named figures of the room: what finite width does to Bayesian networks on a fixed training set."""

from functools import partial
from typing import Any

import numpy as np

from orderparam.core.study import Comparison, Curve, study
from orderparam.plotting import plot_panel
from orderparam.plotting.curves import caption
from orderparam.systems.proportional.experiment import langevin, posterior, sampled_similarity
from orderparam.systems.proportional.model import Convolutional, FullyConnected, LocallyConnected
from orderparam.systems.proportional.tasks import as_images, dense, flat, image_data, patch_teacher
from orderparam.systems.proportional.theory import finite_width, infinite_width, similarity
from orderparam.systems.proportional.theory.recursion import Closure

_LOSSES = ("test_error", "test_bias", "test_variance", "train_error")
_PACELLI = "Pacelli, Ariosto, Pastore, Ginelli, Gherardi, Rotondo 2023"
_BAGLIONI = "Baglioni, Pacelli, Aiudi, Di Renzo, Vezzani, Burioni, Rotondo 2024"
_AIUDI = "Aiudi, Pacelli, Baglioni, Vezzani, Burioni, Rotondo 2025"


def _sampler(samples: int) -> Any:
    return partial(posterior, samples=samples)


def _line(least: float, most: float) -> list[float]:
    return [float(x) for x in np.geomspace(least, most, 25)]


def _with(points: tuple[float, ...], line: list[float]) -> list[float]:
    """The line through the measured points too, so that the two are compared there."""
    return sorted({*line, *(float(x) for x in points)})


def _figure(columns: int, rows: int = 1, width: float = 3.1, height: float = 2.9) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False)


def _legend(figure: Any, axes: Any) -> None:
    """One legend above all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 4))


# ------------------------------------------------------------------------------------------------------------ losses and width


def draw_losses(comparison: Comparison) -> Any:
    """Train and test loss against the width, one column for each depth."""
    panels = comparison.panels
    figure, axes = _figure(len(panels), 2)
    for column, panel in enumerate(panels):
        theories = {label.split(", ")[0]: data for label, data in comparison.theories(panel).items()}
        measured = {label.split(", ")[0]: data for label, data in comparison.experiments(panel).items()}
        for row, name in enumerate(("test_error", "train_error")):
            plot_panel(axes[row, column], theories, measured, "width", name, log="x", title=panel if row == 0 else "")
    _legend(figure, axes[0, -1])
    p = comparison.parameters
    caption(
        figure,
        f"{p['data']}, P = {p['n_train']}, T = {p['temperature']:g}, erf, unit prior variances, {p['n_test']} test points; dots: "
        f"Hamiltonian Monte Carlo, {p['seeds']} runs of 4 chains, standard error over runs. At P/N above one the Gaussian "
        "approximation for the hidden units shows.",
    )
    return figure


@study(
    "finite-width-depth",
    title="Train and test loss against the width of Bayesian networks with one to three layers",
    source=_PACELLI,
    draw=draw_losses,
    seconds=(90, 7200),
    observables=_LOSSES,
    full={
        "data": "mnist", "n_train": 500, "n_test": 1000, "measured_widths": (50, 100, 200, 500, 1000), "samples": 500, "seeds": 4
    },
)
def finite_width_depth(
    data: str = "digits",
    n_train: int = 40,
    n_test: int = 200,
    temperature: float = 0.1,
    depths: tuple[int, ...] = (1, 2, 3),
    measured_widths: tuple[int, ...] = (20, 80),
    samples: int = 100,
    seeds: int = 2,
) -> list[Curve]:
    system = dense(data, n_train, n_test, width=100, temperature=temperature)
    widths = _with(measured_widths, [float(x) for x in np.geomspace(min(measured_widths) / 2, 2000, 12)])
    curves = []
    for depth in depths:
        deep, panel = system.with_(depth=depth), f"depth {depth}"
        curves += [
            Curve(f"nested, {panel}", partial(finite_width, closure="nested"), deep, {"width": widths}, panel=panel),
            Curve(f"infinite width, {panel}", infinite_width, deep, {"width": widths}, panel=panel),
        ]
        others: tuple[Closure, ...] = ("common", "linear") if depth > 1 else ()  # at depth one there is one closure
        for closure in others:
            theory = partial(finite_width, closure=closure)
            curves.append(Curve(f"{closure}, {panel}", theory, deep, {"width": widths}, panel=panel))
        curves.append(Curve(f"sampled, {panel}", _sampler(samples), deep, {"width": measured_widths}, seeds=seeds, panel=panel))
    return curves


# ------------------------------------------------------------------------------------------------------------------ temperature


def draw_temperature(comparison: Comparison) -> Any:
    """Test loss with its parts, and train loss, against the temperature."""
    figure, axes = _figure(4, width=2.7)
    for column, name in enumerate(_LOSSES):
        plot_panel(axes[0, column], comparison.theories(), comparison.experiments(), "temperature", name)
        axes[0, column].set_ylabel(name.replace("_", " "))
    _legend(figure, axes[0, 0])
    p = comparison.parameters
    caption(
        figure,
        f"{p['data']}, P = {p['n_train']}, N = {p['width']}, one hidden layer of erf units, unit prior variances, "
        f"{p['n_test']} test points; {p['seeds']} runs of 4 chains each. Langevin: the discretisation of the papers, learning "
        "rate 0.1 / (T * largest curvature). The scalar theory is known to fail at low temperature where P/N exceeds one.",
    )
    return figure


@study(
    "finite-width-temperature",
    title="Losses of a Bayesian network against its temperature, by theory, Monte Carlo and noisy gradient descent",
    source=_BAGLIONI,
    draw=draw_temperature,
    seconds=(70, 3600),
    observables=_LOSSES,
    full={"data": "mnist", "n_train": 500, "n_test": 1000, "width": 500, "samples": 500, "seeds": 4, "langevin_steps": 1_000_000},
)
def finite_width_temperature(
    data: str = "digits",
    n_train: int = 40,
    n_test: int = 200,
    width: int = 40,
    measured: tuple[float, ...] = (0.01, 0.1, 1.0),
    samples: int = 100,
    seeds: int = 2,
    langevin_steps: int = 20_000,
) -> list[Curve]:
    system = dense(data, n_train, n_test, width=width, temperature=0.1)
    over = {"temperature": _with(measured, _line(1e-3, 10))}
    noisy = [t for t in measured if t >= 0.1]
    descent = partial(langevin, burn_in=langevin_steps // 5, samples=200, thin=max(1, langevin_steps // 200))
    return [
        Curve("finite width", finite_width, system, over),
        Curve("infinite width", infinite_width, system, over),
        Curve("Hamiltonian Monte Carlo", _sampler(samples), system, {"temperature": measured}, seeds=seeds),
        Curve("Langevin", descent, system, {"temperature": noisy}, seeds=seeds),
    ]


# ------------------------------------------------------------------------------------------------------------- order parameters


def _all(comparison: Comparison, kind: str) -> dict[str, Any]:
    """The curves of all panels, for one set of axes."""
    return {label: data for label, data in comparison.curves.items() if data.attrs["kind"] == kind}


def draw_order(comparison: Comparison) -> Any:
    """Q against P / N, with the length of the read-out measured."""
    figure, axes = _figure(1, width=4.6, height=3.4)
    p = comparison.parameters
    theories, experiments = [
        {label: data.isel(layer=0).assign_coords(width=p["n_train"] / data["width"]) for label, data in curves.items()}
        for curves in (_all(comparison, "theory"), _all(comparison, "experiment"))
    ]
    plot_panel(axes[0, 0], theories, experiments, "width", "order_parameters", log="x")
    axes[0, 0].set_xlabel("samples per hidden unit $P/N$")
    axes[0, 0].set_ylabel(r"order parameter $Q = \langle |v|^2 \rangle / (N r)$")
    axes[0, 0].legend()
    caption(
        figure,
        f"{p['data']}, P = {p['n_train']}, one hidden layer of erf units, unit prior variances; lines: minimum of the effective "
        f"action, dots: length of the read-out in {p['seeds']} Monte Carlo runs of 4 chains.",
        70,
    )
    return figure


@study(
    "finite-width-order",
    title="The order parameter of kernel renormalisation against samples per hidden unit",
    source=_PACELLI,
    draw=draw_order,
    seconds=(60, 1800),
    observables=("order_parameters",),
    full={"n_train": 200, "n_test": 500, "measured_widths": (50, 100, 200, 400, 800), "samples": 400, "seeds": 4},
)
def finite_width_order(
    data: str = "digits",
    n_train: int = 40,
    n_test: int = 100,
    temperatures: tuple[float, ...] = (0.1, 1.0),
    measured_widths: tuple[int, ...] = (20, 40, 120),
    samples: int = 250,
    seeds: int = 2,
) -> list[Curve]:
    system = dense(data, n_train, n_test, width=100, temperature=0.1)
    curves = []
    for temperature in temperatures:
        one, panel = system.with_(temperature=temperature), f"T = {temperature:g}"
        line = {"width": _with(measured_widths, _line(5, 4000))}
        curves.append(Curve(f"theory, {panel}", finite_width, one, line, panel=panel))
        curves.append(Curve(f"sampled, {panel}", _sampler(samples), one, {"width": measured_widths}, seeds=seeds, panel=panel))
    return curves


# ------------------------------------------------------------------------------------------------------------ dense against local


def draw_architectures(comparison: Comparison) -> Any:
    """Test loss of each architecture over that of its infinite limit."""
    targets = comparison.parameters["targets"]
    figure, axes = _figure(len(targets), width=3.6)
    for ax, target in zip(axes[0], targets):
        teacher = f"teacher: {target}"
        relative: dict[str, dict[str, Any]] = {"theory": {}, "experiment": {}}
        for label, data in comparison.curves.items():
            name = label.split(", ")[0]
            if label.endswith(teacher) and not name.endswith("limit"):
                limit = float(comparison.curves[f"{name} limit, {teacher}"]["test_error"].mean())
                ratio = _unified(data.assign(test_error=data["test_error"] / limit))
                relative[data.attrs["kind"]][name] = ratio
        plot_panel(ax, relative["theory"], relative["experiment"], "width", "test_error", log="x", title=teacher)
        ax.axhline(1.0, color="0.6", linewidth=0.8, zorder=1)
        ax.set_xlabel("width $N$ or channels $N_c$")
        ax.set_ylabel("test error / infinite width")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, [f"{x} ({'sampled' if i >= 3 else 'theory'})" for i, x in enumerate(labels)],
                  loc="outside upper center", ncols=3)  # fmt: skip
    p = comparison.parameters
    caption(
        figure,
        "Teachers on four independent Gaussian patches of ten pixels: shared = the same filter on all patches, one = on the "
        f"first. P = {p['n_train']}, T = {p['temperature']:g}, erf, {p['n_test']} test points; {p['seeds']} Monte Carlo runs "
        "of 4 chains.",
    )
    return figure


def _unified(data: Any) -> Any:
    return data.rename(channels="width") if "channels" in data.dims else data


@study(
    "finite-width-architectures",
    title="Convolutional, locally connected and fully connected networks: finite against infinite width",
    source=_AIUDI,
    draw=draw_architectures,
    seconds=(80, 3600),
    observables=_LOSSES,
    full={"n_train": 200, "n_test": 1000, "measured": (10, 20, 50, 100, 400), "samples": 400, "seeds": 4},
)
def finite_width_architectures(
    n_train: int = 50,
    n_test: int = 200,
    temperature: float = 0.1,
    targets: tuple[str, ...] = ("shared", "one"),
    measured: tuple[int, ...] = (20,),
    samples: int = 200,
    seeds: int = 2,
) -> list[Curve]:
    curves = []
    grid = _with(measured, [float(x) for x in np.geomspace(5, 2000, 14)])
    for target in targets:
        fields, panel = patch_teacher(target, n_train, n_test), f"teacher: {target}"
        systems: dict[str, tuple[Any, str]] = {
            "fully connected": (FullyConnected(**flat(fields), width=10, temperature=temperature), "width"),
            "convolutional": (Convolutional(**fields, channels=10, temperature=temperature, mask=10), "channels"),
            "locally connected": (LocallyConnected(**fields, channels=10, temperature=temperature, mask=10), "channels"),
        }
        for name, (system, axis) in systems.items():
            own = f"{name}, {panel}"
            curves += [
                Curve(f"{name}, {panel}", finite_width, system, {axis: grid}, panel=own),
                Curve(f"{name} limit, {panel}", infinite_width, system, {axis: [grid[0]]}, panel=own),
                Curve(f"{name}, sampled, {panel}", _sampler(samples), system, {axis: measured}, seeds=seeds, panel=own),
            ]
    return curves


# ------------------------------------------------------------------------------------------------------------ feature importance


def draw_importance(comparison: Comparison) -> Any:
    """Q_ij by theory and measured, for every data set."""
    panels = comparison.panels
    figure, axes = _figure(2, len(panels), width=3.2, height=2.6)
    limit = max(float(np.abs(data["order_parameters"]).max()) for data in comparison.curves.values())
    for row, panel in enumerate(panels):
        pairs = [*comparison.theories(panel).values(), *comparison.experiments(panel).values()]
        for column, data in enumerate(pairs):
            matrix = data["order_parameters"].isel(channels=0)
            matrix = matrix.mean("seed") if "seed" in matrix.dims else matrix
            ax = axes[row, column]
            image = ax.imshow(np.asarray(matrix), cmap="RdBu_r", vmin=-limit, vmax=limit)
            ax.spines[:].set_visible(False)
            count = matrix.shape[0]
            if count <= 6:
                for i in range(count):
                    for j in range(count):
                        value = round(float(matrix[i, j]), 2) + 0.0  # no minus sign before a zero
                        ink = "white" if abs(value) > 0.7 * limit else "black"
                        ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color=ink)
            ax.set_title(f"{panel}, {'theory' if column == 0 else 'sampled'}", fontsize=9)
            ax.set_xlabel("patch $j$")
            ax.set_ylabel("patch $i$")
            ax.set_xticks(range(count))
            ax.set_yticks(range(count))
    figure.colorbar(image, ax=axes, label=r"order parameter $Q_{ij}$", shrink=0.7)
    p = comparison.parameters
    caption(
        figure,
        f"One convolutional layer of {p['channels']} channels, P = {p['n_train']}, T = {p['temperature']:g}, erf. Infinite width "
        f"is the unit matrix. Sampled: read-outs of {p['seeds']} Monte Carlo runs of 4 chains.",
        90,
    )
    return figure


@study(
    "local-feature-importance",
    title="The local order parameters of a convolutional network: which pairs of patches it learns to use",
    source=_AIUDI,
    draw=draw_importance,
    seconds=(60, 1200),
    observables=("order_parameters",),
    full={"n_train": 200, "n_test": 500, "samples": 500, "seeds": 4},
)
def local_feature_importance(
    n_train: int = 60, n_test: int = 100, channels: int = 20, temperature: float = 0.1, samples: int = 150, seeds: int = 2
) -> list[Curve]:
    digits, shape = image_data("digits", n_train, n_test)
    cases = {
        "shared filter": (patch_teacher("shared", n_train, n_test), 10),
        "one patch": (patch_teacher("one", n_train, n_test), 10),
        "digits, parity": (as_images(digits, shape), 4),
    }
    curves = []
    for name, (fields, mask) in cases.items():
        system, over = Convolutional(**fields, channels=channels, temperature=temperature, mask=mask), {"channels": [channels]}
        curves += [
            Curve(f"theory, {name}", finite_width, system, over, panel=name),
            Curve(f"sampled, {name}", _sampler(samples), system, over, seeds=seeds, panel=name),
        ]
    return curves


# ------------------------------------------------------------------------------------------------------------ similarity matrices


def draw_similarity(comparison: Comparison) -> Any:
    """Hidden kernels before and after learning, examples ordered by class."""
    (theory,), (measured,) = comparison.theories().values(), comparison.experiments().values()
    at = theory.isel(width=0)
    sampled = measured.isel(width=0).mean("seed")
    p = comparison.parameters
    y = np.asarray(image_data(p["data"], p["n_train"], 1)[0]["targets"])
    order = np.argsort(-y, kind="stable")
    matrices = {
        f"before learning\nalignment {float(at['prior_alignment']):.2f}": at["prior"],
        f"after, theory\nalignment {float(at['posterior_alignment']):.2f}": at["posterior"],
        f"after, sampled\nalignment {float(sampled['posterior_alignment']):.2f}": sampled["posterior"],
    }
    figure, axes = _figure(3, width=2.6, height=2.9)
    limit = float(np.abs(at["prior"]).max())
    for ax, (title, matrix) in zip(axes[0], matrices.items()):
        image = ax.imshow(np.asarray(matrix)[np.ix_(order, order)], cmap="RdBu_r", vmin=-limit, vmax=limit)
        ax.set_title(title)
        ax.set_xlabel(r"example $\nu$")
        ax.set_ylabel(r"example $\mu$")
        ax.axhline((y > 0).sum() - 0.5, color="black", linewidth=0.6)
        ax.axvline((y > 0).sum() - 0.5, color="black", linewidth=0.6)
    figure.colorbar(image, ax=axes, label=r"$K(x_\mu, x_\nu)$ of the hidden layer", shrink=0.7)
    caption(
        figure,
        f"{p['data']}, P = {p['n_train']}, N = {p['width']}, T = {p['temperature']:g}, erf; examples ordered by class (lines). "
        f"Alignment y^T K y P / (|y|^2 tr K). Theory to first order in 1/N; {p['seeds']} Monte Carlo runs of 4 chains.",
        90,
    )
    return figure


@study(
    "finite-width-similarity",
    title="Similarity matrices of a hidden layer before and after learning",
    source=_AIUDI,
    draw=draw_similarity,
    seconds=(40, 1200),
    observables=("prior_alignment", "posterior_alignment"),
    full={"n_train": 200, "width": 100, "samples": 300, "seeds": 4},
)
def finite_width_similarity(
    data: str = "digits", n_train: int = 40, width: int = 30, temperature: float = 0.1, samples: int = 100, seeds: int = 2
) -> list[Curve]:
    system, over = dense(data, n_train, 10, width=width, temperature=temperature), {"width": [width]}
    return [
        Curve("first order in 1/N", similarity, system, over),
        Curve("sampled", partial(sampled_similarity, samples=samples), system, over, seeds=seeds),
    ]
