"""Figures of noisy training at equilibrium: finite networks sample the posterior of a Gaussian
process, whose output is a membrane that the data pin."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from orderparam.comparison import Curve, study
from orderparam.networks.fully_connected import fully_connected
from orderparam.plotting import Panel
from orderparam.plotting.guides import cross, vertical
from orderparam.systems.kernel_regression.training.experiment import hamiltonian, langevin
from orderparam.systems.kernel_regression.training.model import NetworkTraining
from orderparam.systems.kernel_regression.training.theory import gaussian_process

# the line on which the membrane is drawn: half its length, and the inputs and targets of the data
REACH = 3.0
PINNED = {-2.0: -0.8, -1.0: 0.5, 0.5: -0.3, 1.0: 0.6}
PLACE = (
    "position $u$",
    lambda data: xr.DataArray(np.linspace(-REACH, REACH, data.sizes["test"]), dims=["test"]),
)
_SHOWN = slice(0, None, 3)  # the first and the last of four test points
_POINTS = {0: "first test point", 1: "last test point"}


@study(
    "langevin-vs-gp",
    title=(
        "Networks sampled by Hamiltonian Monte Carlo approach the Gaussian process: means lie "
        "within 13 % at 4 units and 1.3 % at 100, variances within 18 and 2.3 %"
    ),
    source="Neal 1996; Naveh, Ben-David, Sompolinsky, Ringel 2021; Ringel et al. 2025",
    panels=[
        *(
            Panel(
                "width",
                y,
                by="test",
                where={"part": "width", "test": _SHOWN},
                log="x",
                ylabel=f"posterior {y} of $f(x)$",
                text=_POINTS,
            )
            for y in ("mean", "variance")
        ),
        Panel(
            ("Langevin step $dt\\,A$", lambda data: data["curvature_step"]),
            "variance",
            by="test",
            where={"part": "step", "test": _SHOWN},
            ylabel="posterior variance of $f(x)$",
            text=_POINTS,
        ),
    ],
    columns=3,
    caption=(
        r"{activation} network with one hidden layer, {n_train} training points in $d$ = "
        r"{input_dim}, $T$ = {temperature}. In each run {chains} chains that start from the "
        r"prior sample all weights, by Langevin dynamics with the step $dt$ or by Hamiltonian "
        r"Monte Carlo. $dt\,A$ = {curvature_step} with $A$ the curvature of the stiffest mode, "
        r"whose variance the step inflates by $1/(1-dt\,A/2)$; right panel: other steps, at the "
        r"largest width. Shown: first and last of {test_points} test points."
    ),
    seconds=(85, 900),
    observables=("mean", "variance"),
    explained=(
        "Networks of finite width are not Gaussian processes. By Hamiltonian Monte Carlo means "
        "differ by up to 13 % at 4 units, 3 % at 20 and 1.3 % at 100, and variances by up to "
        "18, 8 and 2.3 %. A Langevin step of finite size inflates variances, by 1 to 4 % at dt "
        "A = 0.4 and by 12 to 15 % at dt A = 0.8, less than it inflates that of the stiffest "
        "mode (25 and 67 %)."
    ),
    full={
        "widths": (3, 10, 30, 100, 300, 1000),
        "steps": (0.1, 0.2, 0.4, 0.6, 0.8, 1.0),
        "seeds": 16,
        "chains": 4,
    },
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
) -> Iterator[Curve]:
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
    yield Curve("Gaussian process", gaussian_process, system, across, facets={"part": "width"})
    yield Curve(
        "Langevin", noisy, system, across, seeds, batch_seeds=True, facets={"part": "width"}
    )
    yield Curve(
        "Hamiltonian Monte Carlo",
        exact,
        system,
        across,
        seeds,
        batch_seeds=True,
        facets={"part": "width"},
    )
    yield Curve("Gaussian process", gaussian_process, system, at_steps, facets={"part": "step"})
    yield Curve(
        "Langevin", noisy, system, at_steps, seeds, batch_seeds=True, facets={"part": "step"}
    )


@study(
    "pinned-membrane",
    title="Data pin the output of a wide network, which varies most far from them; noise loosens "
    "the pins",
    source="Cohen, Malka, Ringel 2021; Neal 1996",
    panels=[
        Panel(
            PLACE,
            y,
            by="width",
            facet="temperature",
            ylabel=f"posterior {y} of $f(u, 1)$",
            reference=[*map(vertical, PINNED), *crosses],
        )
        for y, crosses in (("mean", [cross(*point) for point in PINNED.items()]), ("variance", []))
    ],
    columns=2,
    caption=r"""
        {activation} network with one hidden layer and inputs $(u, 1)$, sampled at the noise
        variance $T$ (temperature) by Hamiltonian Monte Carlo, {chains} chains in each of {seeds}
        runs. $f$: output; $N$: units. Crosses: training data; dotted: their places. Lines: Gaussian
        process of infinite width, whose mean minimises half the squared norm of its kernel plus the
        training loss over $T$.
    """,
    seconds=(60, 900),
    observables=("mean", "variance"),
    explained=(
        "Networks of finite width are not Gaussian processes, and the deviation falls with the "
        "width: at T = 0.3 and u = -3 the mean is 9.5(4) % low with 10 units and 1.2(2) % with "
        "100, at u = 3 the variance is 20.8(5) and 1.9(3) % low. At T = 0.02 and u = -1.5, "
        "midway between data, it is 48(2) and 7.5(9) % high."
    ),
    gallery={"widths": (10, 100), "seeds": 16, "draws": 2000},
    full={"widths": (10, 100, 1000), "test_points": 61, "seeds": 16, "draws": 4000},
)
def pinned_membrane(
    activation: str = "erf",
    temperatures: tuple[float, ...] = (0.02, 0.3),
    widths: tuple[int, ...] = (10, 100),
    weight_variance: float = 6.0,
    test_points: int = 25,
    seeds: int = 4,
    chains: int = 4,
    draws: int = 600,
) -> Iterator[Curve]:
    def on_line(places: np.ndarray) -> np.ndarray:
        return np.stack([places, np.ones_like(places)], axis=1)

    system = NetworkTraining(
        on_line(np.array(list(PINNED))),
        list(PINNED.values()),
        on_line(np.linspace(-REACH, REACH, test_points)),
        fully_connected(1, None, activation, weight_variance=weight_variance),
        temperatures[0],
        max(widths),
    )
    sampled = partial(hamiltonian, chains=chains, draws=draws)
    over = {"temperature": temperatures}
    yield Curve("Gaussian process", gaussian_process, system, over)
    for width in widths:
        finite = system.with_(width=width)
        facets = {"width": width}
        yield Curve(
            "sampled network", sampled, finite, over, seeds, batch_seeds=True, facets=facets
        )
