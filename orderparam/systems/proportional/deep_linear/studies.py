"""The figure of linear networks: kernels of all layers at every width."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from orderparam.comparison import Curve, between, study
from orderparam.plotting import Panel, horizontal
from orderparam.systems.proportional.deep_linear.experiment import sampled_layers
from orderparam.systems.proportional.deep_linear.theory import (
    linear_layers,
    zero_temperature_layers,
)
from orderparam.systems.proportional.model import FullyConnected


def linear_teacher(
    signal: float, n_train: int, input_dim: int, n_test: int, **options: Any
) -> FullyConnected:
    """A linear network on y = signal w . x with x ~ N(0, 1) and w ~ N(0, 1/d); every call uses the
    same draw. `options` are fields of `FullyConnected`."""
    random = np.random.default_rng(0)
    x = random.standard_normal((n_train + n_test, input_dim))
    y = signal * x @ random.standard_normal(input_dim) / np.sqrt(input_dim)
    inputs, targets = jnp.asarray(x), jnp.asarray(y)
    return FullyConnected(
        inputs[:n_train],
        targets[:n_train],
        inputs[n_train:],
        targets[n_train:],
        activation="linear",
        **options,
    )


_SIGNALS = {"weak": 0.3, "strong": 1.5}


@study(
    "deep-linear-layers",
    title=(
        "Linear networks of 5 to 45 units: the read-out shrinks for weak targets and grows for "
        "strong ones, more so with depth"
    ),
    source="Li, Sompolinsky 2021; exact averages derived here from the evidence of Hanin, Zlokapa "
    "2023",
    panels=[
        Panel(
            "width",
            y,
            by="depth",
            where={"signal": signal, "layer": layer},
            log="x",
            reference=[horizontal(1.0)],
            ylabel=label,
            title=f"{signal} target",
        )
        for y, layer, label in (
            ("scales", 0, r"scale of the kernel, $p_1 = q_1\cdots q_L$"),
            ("on_target", -1, r"$y^\top K_L\,y$ over its prior value"),
        )
        for signal in _SIGNALS
    ],
    caption="""
        $L$ hidden layers of $N$ linear units, one data set of $P$ = {n_train} examples of $d$ =
        {input_dim} Gaussian inputs, $T$ = {temperature}; linear targets $y$ of variance 0.09 (weak)
        and 2.25 (strong), unit prior variances. $p_1$: mean squared length of the effective
        read-out of the inputs' kernel, 1 in the prior and the product of a factor $q_l$ for each
        layer. $K_L$: kernel of the last hidden layer. Exact: average over the posterior at any
        width. The closed form is the limit of wide layers at zero temperature. Sampled: Hamiltonian
        Monte Carlo over all hidden weights, {seeds} runs of 4 chains.
    """,
    columns=2,
    seconds=(120, 3600),
    observables=("scales", "on_target", "trace", "test_bias", "test_variance"),
    full={"depths": (1, 2, 3, 4), "measured_widths": (5, 15, 45, 135), "samples": 3000},
)
def deep_linear_layers(
    n_train: int = 20,
    input_dim: int = 30,
    n_test: int = 50,
    temperature: float = 0.05,
    depths: tuple[int, ...] = (1, 3),
    measured_widths: tuple[int, ...] = (5, 15, 45),
    samples: int = 600,
    seeds: int = 16,
) -> Iterator[Curve]:
    line = {"width": between((3, 400), 24)}
    sampler = partial(sampled_layers, samples=samples, leapfrog_steps=12)
    for name, signal in _SIGNALS.items():
        for depth in depths:
            system = linear_teacher(
                signal, n_train, input_dim, n_test, width=10, temperature=temperature, depth=depth
            )
            facets = {"signal": name, "depth": depth}
            yield Curve("exact", linear_layers, system, line, facets=facets)
            yield Curve(
                "closed form, $T = 0$",
                zero_temperature_layers,
                system,
                line,
                facets=facets,
                baseline=True,
            )
            yield Curve(
                "sampled",
                sampler,
                system,
                {"width": measured_widths},
                seeds=seeds,
                facets=facets,
            )
