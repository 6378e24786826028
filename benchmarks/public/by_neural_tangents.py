"""Kernels of infinite networks by neural-tangents."""

import jax
import jax.numpy as jnp
import numpy as np
from answer import answer
from neural_tangents import stax

jax.config.update("jax_enable_x64", True)


def _kernels(network, x):  # type: ignore[no-untyped-def]
    both = jax.jit(lambda x: network[2](x, None, ("nngp", "ntk")))
    x = jnp.asarray(x)
    return lambda: np.stack([np.asarray(part) for part in both(x)])


def deep(phi):  # type: ignore[no-untyped-def]
    def prepared(inputs):  # type: ignore[no-untyped-def]
        layers = []
        for _ in range(3):
            layers += [stax.Dense(1, W_std=2.0**0.5, b_std=0.1**0.5), phi()]
        last = stax.Dense(1, W_std=2.0**0.5, b_std=0.1**0.5)
        return _kernels(stax.serial(*layers, last), inputs["vectors"])

    return prepared


def images(inputs):  # type: ignore[no-untyped-def]
    scale = {"W_std": 2.0**0.5, "b_std": 0.1**0.5}
    layers = []
    for _ in range(2):
        layers += [stax.Conv(1, (3, 3), padding="SAME", **scale), stax.Relu()]
    network = stax.serial(*layers, stax.GlobalAvgPool(), stax.Dense(1, **scale))
    return _kernels(network, inputs["images"])


answer(
    "neural-tangents",
    {"erf-kernels": deep(stax.Erf), "relu-kernels": deep(stax.Relu), "image-kernels": images},
)
