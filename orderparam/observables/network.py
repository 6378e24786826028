"""Reads a network of any framework into layers with activations and weights.

The framework is recognised by the name of the module that defines the model's type, so that no
framework is imported.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from orderparam.observables.layers import (
    InspectedNetwork,
    NetworkFunction,
    NetworkLayer,
    outputs_of,
)
from orderparam.observables.observable import Observed

_WEIGHTS = ("weight", "kernel", "coef")  # endings of the names of weights
_OWN = "parameters: are for functions and PyTorch modules; give another model"


def read_network(model: Any, inputs: np.ndarray | None, parameters: Any = None) -> InspectedNetwork:
    """The network behind a model: a JAX function of parameters and inputs, an Equinox or Flax
    module, a `torch.nn.Module`, or a fitted scikit-learn estimator.

    Raises `ValueError` for another kind of model, missing inputs or parameters, and a network whose
    outputs differ between two passes (dropout that is not switched off).
    """
    if inputs is None:
        raise ValueError("inputs: a model needs inputs to act on")
    x, framework = np.asarray(inputs), framework_of(model)
    if framework == "torch":
        from orderparam.observables.torch_network import loaded, read_torch

        return read_torch(model if parameters is None else loaded(model, parameters), x)
    if framework == "sklearn":
        if parameters is not None:
            raise ValueError(_OWN)
        return _scikit_learn(model, x)
    return _of_jax(*jax_function(model, parameters), x)


def framework_of(model: Any) -> str:
    """The framework of a model: "torch", "sklearn", "equinox", "flax.nnx", "flax.linen", or "jax"
    for a function. Raises `ValueError` for any other object."""
    origins = [kind.__module__ for kind in type(model).__mro__]
    for name in ("torch", "sklearn", "equinox", "flax.nnx", "flax.linen"):
        if any(f"{origin}.".startswith(f"{name}.") for origin in origins):
            return name
    if callable(model):
        return "jax"
    raise ValueError(
        f"a model of type {type(model).__name__}: must be a function f(parameters, inputs) in JAX, "
        "an Equinox or Flax module, a torch.nn.Module, a scikit-learn estimator, or files"
    )


def jax_function(model: Any, parameters: Any = None) -> tuple[Callable[[Any, Any], Any], Any]:
    """A function f(parameters, inputs) of a batch, and the parameters, of a function in JAX, an
    Equinox or a Flax module, in the mode of inference.

    Raises `ValueError` for parameters that are missing, or given to a module that has its own.
    """
    framework = framework_of(model)
    if framework == "equinox":
        if parameters is not None:
            raise ValueError(_OWN)
        import equinox as eqx
        import jax

        arrays, static = eqx.partition(eqx.nn.inference_mode(model), eqx.is_inexact_array)
        return lambda theta, x: jax.vmap(eqx.combine(theta, static))(x), arrays
    if framework == "flax.nnx":
        if parameters is not None:
            raise ValueError("parameters: a Flax NNX module has its own; give another module")
        from flax import nnx

        model.eval()
        graph, state, rest = nnx.split(model, nnx.Param, ...)
        return lambda theta, x: nnx.merge(graph, theta, rest)(x), state
    if parameters is None and framework == "flax.linen":
        raise ValueError("parameters: a Flax linen module needs its variables, as from init")
    if parameters is None:
        raise ValueError("parameters: a function f(parameters, inputs) needs its parameters")
    return (model.apply if framework == "flax.linen" else model), parameters


def layers_of(
    model: Callable[[Any, Any], Any], parameters: Any, x: np.ndarray
) -> tuple[NetworkLayer, ...]:
    """The layers of a function in JAX, found in its program."""
    from orderparam.observables.products import products

    found = products(model, parameters, x)
    return tuple(NetworkLayer(f"layer {k}", *parts) for k, parts in enumerate(found, 1))


def of_arrays(
    arrays: Mapping[str, np.ndarray], examples: int | None, activated: bool = True
) -> InspectedNetwork:
    """The network behind saved arrays. Arrays named `..weight`, `..kernel` or `..coef` are weights;
    of the others, arrays with a row for each example are activations, and other matrices are
    weights. activated: where there are examples there must be activations."""
    layers, activations = [], {}
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise ValueError(f"array {name!r} has dtype {array.dtype}: must be real numbers")
        last = name.lower().replace("_", ".").rsplit(".", 1)[-1]
        is_weight = any(last.endswith(ending) for ending in _WEIGHTS)
        if not is_weight and array.ndim >= 2 and examples in (None, len(array)):
            activations[name] = array
        elif array.ndim >= 2 and min(array.shape[0], array[0].size) >= 2:
            layers.append(NetworkLayer(name, weight=np.asarray(array)))
    if not activations and not (layers and (examples is None or not activated)):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in list(arrays.items())[:20])
        rows = "" if examples is None else f" of the {examples}"
        raise ValueError(f"no array has a row for each{rows} examples; there are: {shapes}")
    return InspectedNetwork(tuple(layers), activations=activations)


def _of_jax(model: Callable[[Any, Any], Any], parameters: Any, x: np.ndarray) -> InspectedNetwork:
    import jax.numpy as jnp

    outputs = outputs_of(lambda: model(parameters, jnp.asarray(x)), x)
    if len(outputs) != len(x):
        raise ValueError(f"outputs have shape {outputs.shape}: must have a row for each example")
    function = _function(model, parameters)
    return InspectedNetwork(function.read(x), outputs.reshape(len(x), -1), function)


def _function(model: Callable[[Any, Any], Any], parameters: Any) -> NetworkFunction:
    import jax
    import jax.numpy as jnp

    from orderparam.observables.curvature import curvature
    from orderparam.observables.learning_coefficient import (
        LearningCoefficient,
        learning_coefficient,
    )
    from orderparam.observables.tangent_features import tangent_features
    from orderparam.observables.tangent_kernel import tangent_kernel

    def read(x: np.ndarray) -> tuple[NetworkLayer, ...]:
        return layers_of(model, parameters, x)

    def outputs(x: np.ndarray) -> np.ndarray:
        return np.asarray(model(parameters, jnp.asarray(x))).reshape(len(x), -1)

    def kernel(x: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        return tangent_kernel(model, parameters, x, others)

    def features(x: np.ndarray, directions: int, seed: int) -> np.ndarray:
        return tangent_features(model, parameters, x, directions, seed)

    def along(x: np.ndarray) -> np.ndarray:
        moved = jax.jvp(lambda theta: model(theta, jnp.asarray(x)), (parameters,), (parameters,))[1]
        return np.asarray(moved, np.float64).reshape(len(x), -1)

    def error(theta: Any, x: np.ndarray, y: np.ndarray, loss: str) -> Any:
        f = model(theta, jnp.asarray(x)).reshape(len(x), -1)
        if loss == "square":
            return jnp.mean(jnp.sum((f - y) ** 2, axis=1))
        if y.shape[1] == 1:  # one logit, targets -1 and 1
            return jnp.mean(jax.nn.softplus(-y * f))
        return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(f, axis=1), axis=1))

    def sharpness(x: np.ndarray, y: np.ndarray, loss: str) -> Observed:
        return curvature(lambda theta: error(theta, x, y, loss), parameters, probes=3).largest

    def coefficient(
        x: np.ndarray, y: np.ndarray, loss: str, times: np.ndarray, part: float, seed: int
    ) -> LearningCoefficient:
        squares = sum(float(jnp.sum(jnp.square(leaf))) for leaf in jax.tree.leaves(parameters))
        return learning_coefficient(
            lambda theta: error(theta, x, y, loss) / (2 if loss == "square" else 1),
            parameters,
            times=times.tolist(),
            prior_width=part * (np.sqrt(squares / count) or 1.0),
            by="fluctuation",
            seed=seed,
        )

    count = sum(np.size(leaf) for leaf in jax.tree.leaves(parameters))
    return NetworkFunction(outputs, read, kernel, features, along, count, sharpness, coefficient)


def _scikit_learn(model: Any, x: np.ndarray) -> InspectedNetwork:
    import jax
    import jax.numpy as jnp

    probabilities = model.predict_proba(x) if hasattr(model, "predict_proba") else None
    if hasattr(model, "coefs_"):
        function = {
            "relu": jax.nn.relu, "tanh": jnp.tanh, "logistic": jax.nn.sigmoid,
            "identity": lambda h: h,
        }[model.activation]  # fmt: skip

        def network(theta: Any, x: Any) -> Any:
            for w, b in theta[:-1]:
                x = function(x @ w + b)
            return x @ theta[-1][0] + theta[-1][1]

        read = _of_jax(network, list(zip(model.coefs_, model.intercepts_)), x)
    elif hasattr(model, "coef_"):
        weights = np.atleast_2d(model.coef_).T
        theta = (weights, np.atleast_1d(model.intercept_))
        read = _of_jax(lambda theta, x: x @ theta[0] + theta[1], theta, x)
    elif probabilities is not None:
        read = InspectedNetwork((), probabilities)
    elif hasattr(model, "predict"):
        read = InspectedNetwork((), np.asarray(model.predict(x), np.float64).reshape(len(x), -1))
    else:
        raise ValueError(f"a {type(model).__name__} has no predictions: it must be fitted")
    return InspectedNetwork(read.layers, read.outputs, read.function, probabilities=probabilities)
