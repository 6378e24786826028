"""How the studies of the room are drawn."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from orderparam.core.agreement import estimate
from orderparam.core.study import Comparison
from orderparam.plotting import plot_panel
from orderparam.plotting.curves import caption, draw_line, yerror
from orderparam.plotting.style import COLOURS, MARKERS
from orderparam.systems.proportional.tasks import image_data

LOSSES = ("test_error", "test_bias", "test_variance", "train_error")


def _figure(columns: int, rows: int = 1, width: float = 3.1, height: float = 2.9) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False)


def _legend(figure: Any, axes: Any, columns: int = 5) -> None:
    """One legend above all panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), columns))


def _short(curves: Mapping[str, Any]) -> dict[str, Any]:
    """Labels up to the comma: what follows it is said by the panel."""
    return {label.split(", ")[0]: data for label, data in curves.items()}


def _runs(comparison: Comparison) -> str:
    """How the networks were sampled, with the worst R-hat and effective sample size of all runs."""
    measured = [data for panel in comparison.panels for data in comparison.experiments(panel).values()]
    r_hat = max(float(data["r_hat"].max()) for data in measured)
    least = min(float(data["effective_samples"].min()) for data in measured)
    return (
        f"{comparison.parameters['seeds']} Monte Carlo runs of 4 chains, half from the prior, half from the bottom of the energy "
        f"(R-hat at most {r_hat:.2f}, at least {least:.0f} effective samples a run)"
    )


def _dots(comparison: Comparison) -> str:
    return f"{_runs(comparison)}, standard error over runs"


# ------------------------------------------------------------------------------------------------------------ fully connected


def draw_depth(comparison: Comparison) -> Any:
    """Train and test loss against the width, one column for each depth."""
    panels = comparison.panels
    figure, axes = _figure(len(panels), 2)
    for column, panel in enumerate(panels):
        theories, measured = _short(comparison.theories(panel)), _short(comparison.experiments(panel))
        for row, name in enumerate(("test_error", "train_error")):
            plot_panel(axes[row, column], theories, measured, "width", name, log="x", title=panel if row == 0 else "")
    _legend(figure, axes[0, -1])
    p = comparison.parameters
    caption(
        figure,
        f"{p['data']}, P = {p['n_train']}, T = {p['temperature']:g}, erf, unit prior variances, {p['n_test']} test points. "
        f"Lines: three closures of the theory, the same at depth 1. Dots: {_dots(comparison)}. "
        "The gap in the train error at small N shrinks as N grows at fixed P/N (docs/proportional.md).",
    )
    return figure


def draw_temperature(comparison: Comparison) -> Any:
    """Test loss with its parts, and train loss, against the temperature."""
    figure, axes = _figure(4, width=2.7)
    for column, name in enumerate(LOSSES):
        log = "xy" if name == "train_error" else "x"
        plot_panel(axes[0, column], comparison.theories(), comparison.experiments(), "temperature", name, log=log)
        axes[0, column].set_ylabel(name.replace("_", " "))
    _legend(figure, axes[0, 0])
    p = comparison.parameters
    caption(
        figure,
        f"{p['data']}, P = {p['n_train']}, N = {p['width']}, one hidden layer of erf units, unit prior variances, "
        f"{p['n_test']} test points; {_dots(comparison)}. Langevin: the discretisation of the papers, learning "
        "rate 0.1 / (T * largest curvature). The scalar theory is known to fail at low temperature where P/N exceeds one.",
    )
    return figure


def draw_order(comparison: Comparison) -> Any:
    """Q, test and train loss against P / N."""
    figure, axes = _figure(3, height=3.4)
    p = comparison.parameters
    names = {
        "order_parameters": "order parameter $Q$",
        "test_error": "test error / infinite width",
        "train_error": "train error / infinite width",
    }
    theories: dict[str, Any] = {}
    experiments: dict[str, Any] = {}
    for panel in comparison.panels:
        (limit,) = (data for label, data in comparison.theories(panel).items() if label.startswith("infinite"))
        for kind, curves in ((theories, comparison.theories(panel)), (experiments, comparison.experiments(panel))):
            for label, data in curves.items():
                if not label.startswith("infinite"):
                    relative = {name: data[name] / float(limit[name][0]) for name in ("test_error", "train_error")}
                    kind[label] = data.isel(layer=0).assign(relative).assign_coords(width=p["n_train"] / data["width"])
    for ax, (name, label) in zip(axes[0], names.items()):
        plot_panel(ax, theories, experiments, "width", name, log="x")
        ax.axhline(1.0, color="0.6", linewidth=0.8, zorder=1)
        ax.set_xlabel("samples per hidden unit $P/N$")
        ax.set_ylabel(label)
    _legend(figure, axes[0, 0])
    caption(
        figure,
        f"{p['data']}, P = {p['n_train']}, {p['n_test']} test points, one hidden layer of erf units, unit prior variances; "
        f"lines: minimum of the effective action, dots: {_dots(comparison)}; Q is measured as the squared length of the "
        "read-out, <|v|^2> / (N r).",
    )
    return figure


def draw_priors(comparison: Comparison) -> Any:
    """Losses against the prior variance of the hidden weights and of the read-out."""
    axis = {
        "weight_variance": r"hidden prior variance $1/\lambda_0$",
        "readout_variance": r"read-out prior variance $1/\lambda_1$",
    }
    figure, axes = _figure(4, width=2.8)
    for row, (name, label) in enumerate(axis.items()):
        theories, measured = _short(comparison.theories(name)), _short(comparison.experiments(name))
        for column, loss in enumerate(("test_error", "train_error")):
            ax = axes[0, 2 * row + column]
            plot_panel(ax, theories, measured, name, loss, log="x")
            ax.set_xlabel(label)
            ax.set_ylabel(loss.replace("_", " "))
    _legend(figure, axes[0, 0])
    p = comparison.parameters
    caption(
        figure,
        f"{p['data']}, P = {p['n_train']}, N = {p['width']}, T = {p['temperature']:g}, one hidden layer of erf units, "
        f"{p['n_test']} test points; the other variance is one. Dots: {_dots(comparison)}.",
    )
    return figure


# ------------------------------------------------------------------------------------------------------------ dense against local


def draw_architectures(comparison: Comparison) -> Any:
    """Test loss of each architecture over that of its infinite limit."""
    targets = comparison.parameters["targets"]
    figure, axes = _figure(len(targets), width=3.6, height=3.4)
    for ax, target in zip(axes[0], targets):
        teacher = f"teacher: {target}"
        relative: dict[str, dict[str, Any]] = {"theory": {}, "experiment": {}}
        for label, data in comparison.curves().items():
            name = label.split(", ")[0]
            if label.endswith(teacher) and not name.endswith("limit"):
                limit = float(comparison.curves()[f"{name} limit, {teacher}"]["test_error"].mean())
                ratio = data.assign(test_error=data["test_error"] / limit)
                relative[data.attrs["kind"]][name] = ratio.rename(channels="width") if "channels" in ratio.dims else ratio
        for number, (name, data) in enumerate(relative["theory"].items()):
            draw_line(ax, data, "width", "test_error", number, name)
            measured = relative["experiment"][name]
            mean, error = estimate(measured, "test_error")
            style = {"fmt": MARKERS[number], "color": COLOURS[number], "markerfacecolor": "white"}
            ax.errorbar(measured["width"], mean, yerror(error), **style, zorder=3)
        ax.set_xscale("log")
        ax.set_title(teacher)
        ax.axhline(1.0, color="0.6", linewidth=0.8, zorder=1)
        ax.set_xlabel("width $N$ or channels $N_c$")
        ax.set_ylabel("test error / infinite width")
    _legend(figure, axes[0, 0])
    p = comparison.parameters
    caption(
        figure,
        "Teachers on four independent Gaussian patches of ten pixels: shared = the same filter on all patches, one = on the "
        f"first. Lines: theory; symbols of the same colour: sampled. P = {p['n_train']}, T = {p['temperature']:g}, erf, "
        f"unit prior variances, {p['n_test']} test points; "
        f"{_dots(comparison)}.",
    )
    return figure


def draw_importance(comparison: Comparison) -> Any:
    """Q_ij by theory and measured, for every data set."""
    panels = comparison.panels
    figure, axes = _figure(2, len(panels), width=3.2, height=2.6)
    limit = max(float(np.abs(data["order_parameters"]).max()) for data in comparison.curves().values())
    for row, panel in enumerate(panels):
        pairs = [*comparison.theories(panel).values(), *comparison.experiments(panel).values()]
        for column, data in enumerate(pairs):
            matrix = data["order_parameters"].isel(channels=0)
            matrix = matrix.mean("seed") if "seed" in matrix.dims else matrix
            ax = axes[row, column]
            image = ax.imshow(np.asarray(matrix), cmap="RdBu_r", vmin=-limit, vmax=limit)
            ax.spines[:].set_visible(False)
            if matrix.shape[0] <= 6:
                _entries(ax, np.asarray(matrix), limit)
            ax.set_title(f"{panel}, {'theory' if column == 0 else 'sampled'}", fontsize=9)
            ax.set_xlabel("patch $j$")
            ax.set_ylabel("patch $i$")
            ax.set_xticks(range(matrix.shape[0]))
            ax.set_yticks(range(matrix.shape[0]))
            ax.tick_params(length=0)
    figure.colorbar(image, ax=axes, label=r"order parameter $Q_{ij}$", shrink=0.7)
    p = comparison.parameters
    caption(
        figure,
        f"One convolutional layer of {p['channels']} channels, P = {p['n_train']}, T = {p['temperature']:g}, erf. Infinite width "
        f"is the unit matrix. Sampled: read-outs in {_runs(comparison)}.",
        90,
    )
    return figure


def _entries(ax: Any, matrix: np.ndarray, limit: float) -> None:
    """The numbers in the cells of an image."""
    for (i, j), entry in np.ndenumerate(matrix):
        value = round(float(entry), 2) + 0.0  # no minus sign before a zero
        ink = "white" if abs(value) > 0.7 * limit else "black"
        ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=7, color=ink)


# ------------------------------------------------------------------------------------------------------------ similarity matrices


def draw_similarity(comparison: Comparison) -> Any:
    """Hidden kernels before learning, and what learning adds, examples ordered by class; one row for each network."""
    p, panels = comparison.parameters, comparison.panels
    y = np.asarray(image_data(p["data"], p["n_train"], 1)[0]["targets"])
    order = np.argsort(-y, kind="stable")
    figure, axes = _figure(3, len(panels), width=2.9, height=2.7)
    for row, panel in enumerate(panels):
        (theory,), (runs,) = comparison.theories(panel).values(), comparison.experiments(panel).values()
        before, after = (np.asarray(theory[name]).squeeze() for name in ("prior", "posterior"))
        measured = np.asarray((runs["posterior"] - runs["prior"]).mean("seed")).squeeze()
        start, end = (theory[name].item() for name in ("prior_alignment", "posterior_alignment"))
        gain = float(runs["posterior_alignment"].mean() / runs["prior_alignment"].mean())
        titles = {
            f"{panel}, before\nalignment {start:.2f}": before,
            f"change, theory\nalignment x {end / start:.2f}": after - before,
            f"change, sampled\nalignment x {gain:.2f}": measured,
        }
        for column, (title, matrix) in enumerate(titles.items()):
            ax = axes[row, column]
            limit = float(np.abs(before if column == 0 else after - before).max())
            image = ax.imshow(matrix[np.ix_(order, order)], cmap="RdBu_r", vmin=-limit, vmax=limit)
            ax.set_title(title, fontsize=9)
            ax.set_xlabel(r"example $\nu$")
            ax.set_ylabel(r"example $\mu$")
            ax.axhline((y > 0).sum() - 0.5, color="black", linewidth=0.6)
            ax.axvline((y > 0).sum() - 0.5, color="black", linewidth=0.6)
            figure.colorbar(image, ax=ax, shrink=0.8)
    caption(
        figure,
        f"Kernel of the hidden layer, K(x_mu, x_nu), {p['data']}, P = {p['n_train']}, N = {p['width']} units or channels "
        f"(patches of side {p['mask']}), T = {p['temperature']:g}, erf; examples ordered by class (lines). Alignment "
        f"y^T K y P / (|y|^2 tr K). Theory to first order in 1/N; {_runs(comparison)}.",
    )
    return figure
