"""Reads the layers of a `torch.nn.Module`; this module is imported only where there is one."""

import copy
from typing import Any

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch.func import functional_call, grad, jacrev, jvp, vmap

from orderparam.observables.layers import (
    InspectedNetwork,
    NetworkFunction,
    NetworkLayer,
    outputs_of,
)
from orderparam.observables.learning_coefficient import LearningCoefficient, learning_coefficient
from orderparam.observables.observable import Observed
from orderparam.observables.tangent_features import BATCH
from orderparam.observables.tangent_kernel import BLOCK
from orderparam.observables.torch_loss import torch_loss


def read_torch(model: Any, x: np.ndarray) -> InspectedNetwork:
    """The network behind a module with its present parameters, in evaluation mode; the module
    itself is not changed.

    Layers are the modules with a weight of two or more axes, by hooks; the axis of channels is the
    second one of convolutions and the last one of linear layers.
    """
    function = _Function(copy.deepcopy(model).eval())
    outputs = outputs_of(lambda: function.outputs(x), x)
    evaluated = NetworkFunction(
        function.outputs,
        function.read,
        function.kernel,
        function.features,
        function.along,
        function.count,
        function.curvature,
        function.coefficient,
    )
    return InspectedNetwork(function.read(x), outputs, evaluated)


def loaded(model: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A copy of a module with these parameters, by name. Raises `ValueError` where they do not
    fit."""
    filled = copy.deepcopy(model)
    state = {name: torch.as_tensor(np.array(array)) for name, array in arrays.items()}
    try:
        filled.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(f"parameters: {' '.join(str(error).split())}") from None
    return filled


class _Function:
    """A module in evaluation mode, in its precision and on its device."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.parameters = {name: value.detach() for name, value in module.named_parameters()}
        self.buffers = dict(module.named_buffers())
        self.count = sum(value.numel() for value in self.parameters.values())
        self.kind = next(iter(self.parameters.values()), torch.zeros(1))

    def given(self, x: np.ndarray) -> Any:
        tensor = torch.as_tensor(np.array(x)).to(self.kind.device)
        return tensor.to(self.kind.dtype) if tensor.is_floating_point() else tensor

    def run(self, parameters: Any, x: Any) -> Any:
        return functional_call(self.module, (parameters, self.buffers), (x,))

    def outputs(self, x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found = _numbers(self.module(self.given(x)))
        if len(found) != len(x):
            raise ValueError(f"outputs have shape {found.shape}: must have a row for each example")
        return found.reshape(len(x), -1)

    def read(self, x: np.ndarray) -> tuple[NetworkLayer, ...]:
        found: list[NetworkLayer] = []
        names = {module: name for name, module in self.module.named_modules()}

        def hook(module: Any, taken: Any, out: Any) -> None:
            last = type(module).__name__.startswith("Linear")
            bias = getattr(module, "bias", None)
            before = _numbers(out)
            if bias is not None:  # as in the other frameworks, outputs are those before the bias
                shape = [1] * before.ndim
                shape[-1 if last else 1] = -1
                before = before - _numbers(bias).reshape(shape)
            inputs, outputs = (_ordered(one, last) for one in (_numbers(taken[0]), before))
            found.append(NetworkLayer(names[module], inputs, outputs, _numbers(module.weight)))

        hooks = [
            module.register_forward_hook(hook)
            for module in self.module.modules()
            if getattr(getattr(module, "weight", None), "ndim", 0) >= 2
        ]
        try:
            with torch.no_grad():
                self.module(self.given(x))
        finally:
            for one in hooks:
                one.remove()
        return tuple(found)

    def kernel(self, x: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        step = max(1, BLOCK // (8 * self.outputs(x[:1]).size * max(self.count, 1)))
        right = self.given(x if others is None else others)
        rows = []
        for left in map(self._jacobian, self.given(x).split(step)):
            blocks = (self._jacobian(part) for part in right.split(step))
            rows.append(np.hstack([np.einsum("iap,jap->ij", left, block) for block in blocks]))
        return np.vstack(rows)

    def _jacobian(self, x: Any) -> np.ndarray:
        one = jacrev(lambda theta, example: self.run(theta, example[None]).reshape(-1))
        parts = vmap(one, (None, 0))(self.parameters, x)
        return _numbers(torch.cat([part.flatten(2) for part in parts.values()], dim=2))

    def features(self, x: np.ndarray, directions: int, seed: int) -> np.ndarray:
        made, batches = torch.Generator().manual_seed(seed), self.given(x).split(BATCH)
        found = []
        for _ in range(directions):
            drawn = {
                name: torch.randn(value.shape, generator=made, dtype=value.dtype).to(value.device)
                for name, value in self.parameters.items()
            }
            moved = [
                jvp(lambda theta, x=x: self.run(theta, x), (self.parameters,), (drawn,))[1]
                for x in batches
            ]
            found.append(_numbers(torch.cat(moved)).reshape(len(x), -1))
        return np.stack(found, axis=1)

    def along(self, x: np.ndarray) -> np.ndarray:
        given = self.given(x)
        moved = jvp(lambda theta: self.run(theta, given), (self.parameters,), (self.parameters,))[1]
        return _numbers(moved).reshape(len(x), -1)

    def coefficient(
        self, x: np.ndarray, y: np.ndarray, loss: str, times: np.ndarray, part: float, seed: int
    ) -> LearningCoefficient:
        """The learning coefficient, in double precision."""
        module = copy.deepcopy(self.module).double()
        given, goal = _Function(module).given(x), torch.as_tensor(y).to(self.kind.device)
        measured, start = torch_loss(
            module,
            lambda net: _error(net(given), goal, loss) / (2 if loss == "square" else 1),
        )
        return learning_coefficient(
            measured,
            start,
            times=times.tolist(),
            prior_width=part * (float(np.sqrt(np.mean(start**2))) or 1.0),
            by="fluctuation",
            seed=seed,
        )

    def curvature(self, x: np.ndarray, y: np.ndarray, loss: str) -> Observed:
        """The largest eigenvalue of the Hessian of the mean over examples of |f - y|^2 or of the
        cross-entropy, by Lanczos; the norm of its residual bounds the distance to an eigenvalue."""
        given, goal = self.given(x), torch.as_tensor(y).to(self.kind)
        sizes = [value.numel() for value in self.parameters.values()]

        def error(theta: Any) -> Any:
            return _error(self.run(theta, given), goal, loss)

        def product(vector: np.ndarray) -> np.ndarray:
            parts = torch.as_tensor(vector).to(self.kind).split(sizes)
            along = {
                name: part.reshape(value.shape)
                for part, (name, value) in zip(parts, self.parameters.items())
            }
            moved = jvp(grad(error), (self.parameters,), (along,))[1]
            return np.concatenate([_numbers(moved[name]).ravel() for name in self.parameters])

        start = np.random.default_rng(0).standard_normal(self.count)
        operator = LinearOperator((self.count,) * 2, matvec=product, dtype=np.float64)
        values, vectors = eigsh(operator, 1, which="LA", v0=start)
        value, vector = float(values[0]), vectors[:, 0]
        bound = float(np.linalg.norm(product(vector) - value * vector))
        return Observed(
            "largest curvature", value, value - bound, value + bound, estimand="entries",
            source="Lanczos 1950",
        )  # fmt: skip


def _error(outputs: Any, goal: Any, loss: str) -> Any:
    """The mean over examples of |f - y|^2, or of the cross-entropy: of one logit with targets -1
    and 1, of several with one column for each class."""
    f = outputs.reshape(len(goal), -1)
    if loss == "square":
        return ((f - goal) ** 2).sum(dim=1).mean()
    if goal.shape[1] == 1:
        return torch.nn.functional.softplus(-goal * f).mean()
    return -(goal * torch.log_softmax(f, dim=1)).sum(dim=1).mean()


def _numbers(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().to(torch.float64).cpu())


def _ordered(array: np.ndarray, last: bool) -> np.ndarray:
    """Channels second, positions last."""
    if array.ndim == 2:
        return array
    moved = np.moveaxis(array, -1, 1) if last else array
    return moved.reshape(*moved.shape[:2], -1)
