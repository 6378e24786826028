"""How the study of theories on a given training set is drawn."""

from typing import Any

import matplotlib.pyplot as plt

from orderparam.core.study import Comparison
from orderparam.plotting.curves import caption, draw_line
from orderparam.plotting.measured import dots
from orderparam.plotting.style import COLOURS

OPEN: dict[str, Any] = {"markersize": 9, "markerfacecolor": "none"}  # what lies below stays visible


def draw_particles(comparison: Comparison) -> Any:
    """R_1, R_2 and the spread of the weights along w_* against the width."""
    p = comparison.parameters
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.8))
    labels = ("$R_1$", "$R_2$", r"spread of $w\cdot w_*$, $d\langle\rho^2\rangle/\sigma_w^2$")
    for panel, (axis, label) in enumerate(zip(axes, labels)):

        def shown(data: Any, panel: int = panel) -> Any:
            return data if panel == 2 else data.isel(degree=panel)

        name = "spread" if panel == 2 else "projections"
        for number, (theory, data) in enumerate(comparison.theories().items()):
            draw_line(axis, shown(data), "width", name, number, theory)
        runs, particles = comparison.experiments().items()
        dots(axis, runs[1]["width"], shown(runs[1])[name], 0, runs[0], colour="black", filled=True)
        dots(axis, particles[1]["width"], shown(particles[1])[name], 2, particles[0], colour=COLOURS[3], **OPEN)
        axis.set(xscale="log", xlabel="width $N$", ylabel=label)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=5)
    caption(
        figure,
        f"Relu network, d = {p['input_dim']}, n = {p['n_train']} (one training set), y = z {p['absolute']:+g} (|z| - E|z|), "
        f"z = w*.x; T = 0.1/chi, variance of sqrt(N) a 1/chi, chi = {p['chi']:g}, E|w|^2 = 1; constants chosen here. R_p: mean "
        f"output projected on He_p(z), over that of the target, on 2000 test points. Dots: HMC of the network; open diamonds: "
        f"weights of the kernel-adaptation theory with their full distribution, by {p['replicas']} N particles; mean and "
        f"standard error of {p['seeds']} runs.",
        150,
    )
    return figure
