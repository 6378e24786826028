"""Figure of noisy training at equilibrium: finite networks sample the posterior of a Gaussian process."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from orderparam.core.agreement import estimate
from orderparam.core.study import Comparison, Curve, study
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting.curves import caption, yerror
from orderparam.plotting.style import COLOURS, MARKERS
from orderparam.systems.kernel_regression.training import NetworkTraining, gaussian_process, hamiltonian, langevin

WIDTHS, STEPS = "width", "step"


def draw_langevin(comparison: Comparison) -> Any:
    """Posterior mean and variance at each test point against width; last, variances against the Langevin step."""
    p = comparison.parameters
    figure, (means, variances, inflated) = plt.subplots(1, 3, figsize=(10.2, 3.7))
    (line,) = comparison.theories(WIDTHS).values()
    runs = comparison.experiments(WIDTHS)
    for axes, observable in ((means, "mean"), (variances, "variance")):
        for point in range(line.sizes["test"]):
            axes.axhline(float(line[observable][0, point]), color=COLOURS[point], linewidth=1.2)
            for marker, data in enumerate(runs.values()):
                mean, error = estimate(data.isel(test=point), observable)
                axes.errorbar(
                    data["width"] * (1.06 if marker else 1 / 1.06), mean, yerror(error), fmt=MARKERS[marker],
                    color=COLOURS[point], markerfacecolor="white" if marker else COLOURS[point],
                )  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlabel("width $N$")
        axes.set_ylabel(f"posterior {observable} of $f(x)$")
    dots = [
        plt.Line2D([], [], color="0.3", linestyle="", marker=MARKERS[number], markerfacecolor=face)
        for number, face in enumerate(("0.3", "white"))
    ]
    means.legend([plt.Line2D([], [], color="0.3"), *dots], ["Gaussian process", *runs], loc="best")

    (reference,) = comparison.theories(STEPS).values()
    (stepped,) = comparison.experiments(STEPS).values()
    steps = np.linspace(0, float(stepped["curvature_step"].max()), 100)
    inflated.fill_between(steps, 1, 1 / (1 - steps / 2), color="0.9", label=r"up to $1/(1-dt\,A/2)$")
    for point in range(line.sizes["test"]):
        value = float(reference["variance"][0, point])
        mean, error = estimate(stepped.isel(test=point), "variance")
        shift = 0.012 * (point - 1.5)
        inflated.errorbar(
            stepped["curvature_step"] + shift, mean / value, yerror(error / value), fmt=MARKERS[0], color=COLOURS[point]
        )
        exact = runs[next(reversed(runs))].sel(width=p["widths"][-1]).isel(test=point)
        mean, error = estimate(exact, "variance")
        inflated.errorbar(
            [shift], [float(mean) / value], [float(error) / value], fmt=MARKERS[1], color=COLOURS[point], markerfacecolor="white"
        )
    inflated.axhline(1, color="0.5", linewidth=0.8)
    inflated.set_xlabel(r"Langevin step $dt\,A$ (largest curvature $A$)")
    inflated.set_ylabel("variance / that of the process")
    inflated.legend(loc="upper left")
    worst = max(float(data["r_hat"].max()) for data in (*runs.values(), stepped))
    least = min(float(data["ess"].min()) for data in (*runs.values(), stepped))
    caption(
        figure,
        f"{p['activation']} network with one hidden layer, {p['n_train']} training points in d = {p['input_dim']}, T = "
        f"{p['temperature']:g}; colours: {line.sizes['test']} test points. All weights are sampled, from prior draws: Langevin "
        f"with dt A = {p['curvature_step']:g} (right: at width {p['widths'][-1]}) and Hamiltonian Monte Carlo (right: at step "
        f"0). {p['seeds']} runs of {p['chains']} chains, bars: standard error over runs. Worst R-hat {worst:.3f}, smallest ESS "
        f"{least:.0f} a run.",
        130,
    )
    return figure


@study(
    "langevin-vs-gp",
    title="Noisy training of finite networks at equilibrium against the Gaussian process of infinite width",
    source="Neal 1996; Naveh, Ben-David, Sompolinsky, Ringel 2021; Ringel et al. 2025",
    draw=draw_langevin,
    seconds=(85, 900),
    observables=("mean", "variance"),
    full={"widths": (3, 10, 30, 100, 300, 1000), "steps": (0.1, 0.2, 0.4, 0.6, 0.8, 1.0), "seeds": 16, "chains": 4},
)
def langevin_vs_gp(
    input_dim: int = 3,
    n_train: int = 8,
    test_points: int = 4,
    activation: str = "erf",
    temperature: float = 0.1,
    widths: tuple[int, ...] = (4, 20, 100),
    curvature_step: float = 0.1,
    steps: tuple[float, ...] = (0.4, 0.8),
    seeds: int = 5,
    chains: int = 4,
) -> list[Curve]:
    inputs = jax.random.normal(jax.random.key(0), (n_train + test_points, input_dim))
    targets = jnp.tanh(inputs[:n_train, 0]) - 0.5 * inputs[:n_train, -1]
    system = NetworkTraining(
        inputs[:n_train],
        targets,
        inputs[n_train:],
        fully_connected(1, None, activation),
        temperature,
        max(widths),
        curvature_step,
    )
    noisy, exact = partial(langevin, chains=chains), partial(hamiltonian, chains=chains)
    across, at_steps = {"width": widths}, {"curvature_step": steps}
    return [
        Curve("Gaussian process", gaussian_process, system, across, panel=WIDTHS),
        Curve("Langevin", noisy, system, across, seeds, batch_seeds=True, panel=WIDTHS),
        Curve("Hamiltonian Monte Carlo", exact, system, across, seeds, batch_seeds=True, panel=WIDTHS),
        Curve("Gaussian process at every step", gaussian_process, system, at_steps, panel=STEPS),
        Curve("Langevin at several steps", noisy, system, at_steps, seeds, batch_seeds=True, panel=STEPS),
    ]
