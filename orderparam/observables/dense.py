"""Recognises a trained network as a fully connected one from the inputs and outputs of its layers.

Theories of fully connected networks know an activation and a scale of each product,

    h_1 = phi(c_0 W_0 x),   h_{l+1} = phi(c_l W_l h_l),   f = c_L W_L h_L,

without biases. Both are found by running the network, so that it does not matter how the network is
written.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from orderparam.core.late import minimize_scalar
from orderparam.gaussian import activation
from orderparam.observables.layers import InspectedNetwork, NetworkLayer

CANDIDATES = ("linear", "relu", "erf", "tanh", "gelu", "sin", "cos")
_FITS = 1e-4  # largest relative deviation of the inputs of a layer from phi(c z)
_SCALES = np.geomspace(1e-3, 1e3, 121)
_MOST = 20_000  # number of entries that are compared


@dataclass(frozen=True)
class DenseNetwork:
    """weights: those of each layer (out, in), times its scale, so that f = W_L phi(.. phi(W_0 x)).
    activation: the name of phi."""

    weights: tuple[np.ndarray, ...]
    activation: str

    @property
    def widths(self) -> list[int]:
        """The widths of the hidden layers."""
        return [len(weight) for weight in self.weights[:-1]]

    def variances(self) -> list[float]:
        """The variances of the entries of each layer, times its number of inputs."""
        return [float(np.mean(w**2) * w.shape[1]) for w in self.weights]


def recognise(network: InspectedNetwork, inputs: np.ndarray) -> DenseNetwork:
    """The fully connected network without biases that is equal to this one.

    Raises `ValueError` with the first property that the network lacks.
    """
    layers = network.layers
    if len(layers) < 2 or network.outputs is None:
        raise ValueError(f"the network has {len(layers)} layers: must have a hidden layer")
    x = np.asarray(inputs, np.float64)
    passed = [_matrices(layer) for layer in layers]
    scale = _scale(passed[0][0], x)
    if scale is None:
        raise ValueError(f"'{layers[0].name}' must act on the inputs themselves")
    scales, names = [scale], set(CANDIDATES)
    for k in range(len(layers) - 1):
        (_, given, _), (taken, _, _) = passed[k], passed[k + 1]
        if taken.shape != given.shape:
            raise ValueError(
                f"'{layers[k + 1].name}' must act on the outputs of '{layers[k].name}'"
            )
        fits = {name: _fitted(name, given, taken) for name in sorted(names)}
        found = {name: fit for name, fit in fits.items() if fit is not None}
        if not found:
            raise ValueError(
                f"'{layers[k + 1].name}' must act on an activation of the outputs of "
                f"'{layers[k].name}': one of {', '.join(CANDIDATES)} everywhere, without biases"
            )
        names = {min(found)}
        scales[-1] *= found[min(found)]
        scales.append(1.0)
    last = _scale(network.outputs, passed[-1][1])
    if last is None:
        raise ValueError("the outputs are not the last product times a number: there is a bias")
    scales[-1] *= last
    weights = tuple(c * weight for c, (_, _, weight) in zip(scales, passed))
    return DenseNetwork(weights, min(names))


def _matrices(layer: NetworkLayer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The inputs and outputs of a fully connected layer, and its weights (out, in)."""
    if layer.inputs is None or layer.outputs is None or layer.weight is None:
        raise ValueError(f"'{layer.name}' was not run")
    if layer.inputs.ndim != 2 or layer.outputs.ndim != 2:
        raise ValueError(f"'{layer.name}' is not fully connected")
    taken, given = (np.asarray(one, np.float64) for one in (layer.inputs, layer.outputs))
    return taken, given, np.asarray(layer.weight, np.float64).reshape(len(layer.weight), -1)


def read_out(network: InspectedNetwork) -> float:
    """The scale c in f = c W h + b, with h the inputs of the last layer. Raises `ValueError` where
    f does not have this form."""
    last = network.layers[-1] if network.layers else None
    if last is None or last.outputs is None or network.outputs is None:
        raise ValueError("there is no last layer")
    if last.inputs is None or last.inputs.ndim != 2:
        raise ValueError(f"'{last.name}' is not fully connected")
    z, f = (one - one.mean(axis=0) for one in (np.asarray(last.outputs), network.outputs))
    scale = _scale(f, z) if z.shape == f.shape else None
    if scale is None:
        raise ValueError("the outputs are not those of the last layer times a number, plus a bias")
    return scale


def _scale(
    f: Float[np.ndarray, "example output"] | None, z: Float[np.ndarray, "example output"]
) -> float | None:
    """The scale c in f = c z."""
    if f is None or np.shape(f) != np.shape(z):
        return None
    power = float(np.sum(z**2))
    c = float(np.sum(f * z)) / power if power > 0 else 0.0
    off = np.linalg.norm(f - c * z)
    return c if off <= _FITS * np.linalg.norm(f) and c != 0 else None


def _fitted(
    name: str, z: Float[np.ndarray, "example unit"], h: Float[np.ndarray, "example unit"]
) -> float | None:
    """The scale c > 0 in h = phi(c z)."""
    phi = activation(name)
    some = np.random.default_rng(0).permutation(z.size)[:_MOST]
    before, after = (np.ravel(one)[some].astype(np.float64) for one in (z, h))
    size = float(np.linalg.norm(after))

    def off(log_scale: float) -> float:
        return float(np.linalg.norm(np.asarray(phi(math.exp(log_scale) * before)) - after))

    unit = 1 / (np.sqrt(np.mean(before**2)) or 1.0)
    grid = np.log(_SCALES * unit)
    best = int(np.argmin([off(u) for u in grid]))
    ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(off, bounds=ends, method="bounded", options={"xatol": 1e-12})
    return math.exp(found.x) if found.fun <= _FITS * size else None
