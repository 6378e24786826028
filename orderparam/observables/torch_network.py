"""Layers of a `torch.nn.Module`; imported only where there is one."""

from typing import Any

import numpy as np

from orderparam.observables.layers import (
    InspectedNetwork,
    NetworkFunction,
    NetworkLayer,
    check_twice,
)
from orderparam.observables.tangent_kernel import BLOCK


def read_torch(model: Any, x: np.ndarray) -> InspectedNetwork:
    """The network behind a module in evaluation mode; the mode it had is restored.

    Layers are the modules with a weight of two or more axes, by hooks; the axis of channels is the
    second one of convolutions and the last one of linear layers.
    """
    import torch

    found: list[NetworkLayer] = []
    names = {module: name for name, module in model.named_modules()}
    own = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    given = torch.as_tensor(np.asarray(x)).to(device)
    if own and given.is_floating_point():
        given = given.to(next(iter(own)))

    def numbers(tensor: Any) -> np.ndarray:
        return np.asarray(tensor.detach().to(torch.float64).cpu())

    def hook(module: Any, taken: Any, out: Any) -> None:
        last = type(module).__name__.startswith("Linear")
        bias = getattr(module, "bias", None)
        before = numbers(out)
        if bias is not None:  # as in the other frameworks, outputs are those before the bias
            shape = [1] * before.ndim
            shape[-1 if last else 1] = -1
            before = before - numbers(bias).reshape(shape)
        inputs, outputs = (_ordered(one, last) for one in (numbers(taken[0]), before))
        found.append(NetworkLayer(names[module], inputs, outputs, numbers(module.weight)))

    hooks = [
        module.register_forward_hook(hook)
        for module in model.modules()
        if getattr(getattr(module, "weight", None), "ndim", 0) >= 2
    ]
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        with torch.no_grad():
            outputs = numbers(model(given))
            for one in hooks:
                one.remove()
            check_twice(outputs, numbers(model(given)))
    finally:
        for one in hooks:
            one.remove()
        for module, mode in modes.items():
            module.training = mode
    return InspectedNetwork(tuple(found), outputs.reshape(len(outputs), -1), _function(model))


def _function(model: Any) -> NetworkFunction:
    """The module in evaluation mode, with the parameters that it has now, in their precision."""
    import torch
    from torch.func import functional_call, jacrev, jvp, vmap

    parameters = {name: value.detach().clone() for name, value in model.named_parameters()}
    buffers = {name: value.detach().clone() for name, value in model.named_buffers()}
    kind = next(iter(parameters.values()))

    def run(theta: Any, x: Any) -> Any:
        modes = {module: module.training for module in model.modules()}
        try:
            model.eval()
            return functional_call(model, (theta, buffers), (x,))
        finally:
            for module, mode in modes.items():
                module.training = mode

    def given(x: np.ndarray) -> Any:
        return torch.as_tensor(np.array(x)).to(kind.device, kind.dtype)

    def outputs(x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found = run(parameters, given(x)).to(torch.float64).cpu()
        return np.asarray(found).reshape(len(x), -1)

    def jacobian(x: Any) -> Any:
        one = jacrev(lambda theta, example: run(theta, example[None]).reshape(-1))
        parts = vmap(one, (None, 0))(parameters, x)
        return torch.cat([part.flatten(2) for part in parts.values()], dim=2).to(torch.float64)

    def kernel(x: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        count = outputs(x[:1]).size * sum(value.numel() for value in parameters.values())
        step = max(1, BLOCK // (8 * count))
        right = given(x if others is None else others)
        return np.vstack(
            [
                np.hstack([_products(left, jacobian(part)) for part in right.split(step)])
                for left in map(jacobian, given(x).split(step))
            ]
        )

    def pull(x: np.ndarray, y: np.ndarray) -> float:
        targets = given(y)

        def error(theta: Any) -> Any:
            return ((run(theta, given(x)).reshape(len(x), -1) - targets) ** 2).sum() / 2

        return float(jvp(error, (parameters,), (parameters,))[1])

    return NetworkFunction(
        outputs, kernel, pull, sum(value.numel() for value in parameters.values())
    )


def _products(left: Any, right: Any) -> np.ndarray:
    return np.einsum("iap,jap->ij", left.cpu().numpy(), right.cpu().numpy())


def _ordered(array: np.ndarray, last: bool) -> np.ndarray:
    """Channels second, positions last."""
    if array.ndim == 2:
        return array
    moved = np.moveaxis(array, -1, 1) if last else array
    return moved.reshape(*moved.shape[:2], -1)
