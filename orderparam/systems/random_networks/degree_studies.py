"""The study of the degrees of random networks."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.special import gammaln

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel, curve, horizontal
from orderparam.systems.random_networks.degrees import (
    CubeNetwork,
    degree_shares,
    measured_degrees,
)
from orderparam.systems.random_networks.studies import ERF, PHASES

RANDOM = "random values"
ZERO = 1e-12  # smaller shares are rounding errors: one layer of relu has no odd degree except 1


def share_of_random_values(degree: np.ndarray, input_dim: int) -> np.ndarray:
    """binom(d, k) / 2^d, the share of degree k in a function whose values are independent."""
    d = input_dim
    logarithm = gammaln(d + 1) - gammaln(degree + 1) - gammaln(d - degree + 1)
    return np.exp(logarithm - d * np.log(2))


@study(
    "degree-bias",
    title="Random networks prefer functions of low degree; in deep chaotic networks the preference "
    "fades",
    source="Yang, Salman 2019 (arXiv:1907.10599); Valle-Pérez, Camargo, Louis 2019",
    gallery={"seeds": 16, "input_dim": 10, "networks": 32},
    full={"seeds": 32, "networks": 256, "input_dim": 12, "width": 512},
    seconds=(60, 3600),
    observables=("share", "mean_degree"),
    explained=(
        "Deep networks of finite width have a smaller mean degree. Control: eight layers of relu "
        "on 7 signs lie 10.8(4), 7.2(4), 3.7(3) and 1.8(4) % below infinite width with 50, 100, "
        "200 and 400 units."
    ),
    columns=2,
    panels=lambda p: [
        *(
            Panel(
                "degrees",
                (
                    "share of the mean square",
                    lambda data: data["share"].where(data["share"] > ZERO),
                ),
                by="depth",
                where={"part": "shares", "phase": phase},
                log="y",
                title=phase,
                ylim=(1e-5, 1.5),
                reference=[
                    curve(partial(share_of_random_values, input_dim=p["input_dim"]), RANDOM)
                ],
            )
            for phase in PHASES
        ),
        Panel(
            "weight_variance",
            "mean_degree",
            by="depth",
            where={"part": "mean"},
            title="erf, biases 0.05",
            ylim=(0.9, 0.54 * p["input_dim"]),
            reference=[horizontal(p["input_dim"] / 2, RANDOM)],
        ),
    ],
    caption=r"""
        Networks with {width} units in each of $L$ hidden layers are functions of $d$ = {input_dim}
        signs. Shown are the share of their mean square in parities of $k$ signs, and the mean of
        $k$ over $k\geq1$. One layer of relu has no parities of odd $k > 1$. Each run draws
        {networks} networks and evaluates them at all $2^d$ inputs. Lines: infinite width; dotted:
        independent random values, $\binom{{d}}{{k}} 2^{{-d}}$. Weight and bias variances: 2 and 0
        for relu, 0.8 and 0.05 for ordered erf, 4 and 0.05 for chaotic erf.
    """,
)
def degree_bias(
    input_dim: int = 8,
    width: int = 200,
    depths: tuple[int, ...] = (1, 3, 8),
    variances: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0),
    networks: int = 16,
    seeds: int = 4,
) -> Iterator[Curve]:
    measured = partial(measured_degrees, networks=networks)
    fine = {"weight_variance": np.geomspace(min(variances), max(variances), 30)}
    for depth in depths:
        for phase, (phi, weight, bias) in PHASES.items():
            network = CubeNetwork(input_dim, weight, bias, width, depth=depth, activation=phi)
            facets = {"part": "shares", "phase": phase, "depth": depth}
            yield Curve("infinite width", degree_shares, network, {}, facets=facets)
            yield Curve("networks", measured, network, {}, seeds, facets=facets)
        network = CubeNetwork(input_dim, 1.0, 0.05, width, depth=depth, activation=ERF)
        facets = {"part": "mean", "depth": depth}
        yield Curve("infinite width", degree_shares, network, fine, facets=facets)
        over = {"weight_variance": variances}
        yield Curve("networks", measured, network, over, seeds, facets=facets)
