r"""The coordinate check: how the layers of a network and their updates grow with its width.

A few steps of training are made at several widths. With $z_l(t)$ the values of layer l after t
steps, before bias and nonlinearity,

$$ \text{rms}\, z_l(0) \sim N^{s_l}, \qquad \text{rms}\,[z_l(t) - z_l(0)] \sim N^{u_l(t)} , $$

where the mean runs over units, examples and positions. The exponents are those of `width`, with its
intervals, and those of the first step stand beside the predictions for standard, NTK and
maximal-update scaling.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orderparam.core.text import with_error
from orderparam.observables.layers import LOSSES, NetworkLayer
from orderparam.observables.network import framework_of, jax_function, layers_of
from orderparam.observables.width_parametrisation import OPTIMISERS
from orderparam.observables.width_runs import FEWEST
from orderparam.observables.width_transfer import SizeExponent, WidthTransfer, width


@dataclass(frozen=True)
class CoordinateCheck:
    """The result of `coordinate_check`.

    table: a pandas data frame with a row for each width and seed; columns width, learning_rate,
    seed, loss_0, loss_1 .., and for each layer its size at the start and its change after t steps,
    "h1", "h1 step 1", .. . transfer: exponents of the start and of the first step, with the
    predictions.
    updates: for each number of steps the exponents of the changes, by layer.
    """

    table: Any
    layers: tuple[str, ...]
    transfer: WidthTransfer
    updates: Mapping[int, Mapping[str, SizeExponent]]

    @property
    def parametrisation(self) -> str:
        """The parametrisation that the first step shows, in a sentence."""
        return self.transfer.parametrisation

    def figure(self) -> Any:
        """The changes by the first step against the width, with the fitted powers."""
        from orderparam.observables.width_figure import draw_width
        from orderparam.plotting import house_style

        with house_style():
            return draw_width(self.transfer)

    def __str__(self) -> str:
        lines = []
        for k, layer in enumerate(self.layers):
            start = self.transfer.activation[layer]
            parts = [f"{layer}: at the start N^{_shown(start)}"]
            for step, found in self.updates.items():
                parts.append(f"change by step {step} N^{_shown(found[layer])}")
            predicted = ", ".join(
                f"{name} {optimiser} {growth.update[k]:g}"
                for (name, optimiser), growth in self.transfer.predictions.items()
            )
            lines.append("; ".join(parts) + f" (step 1: {predicted})")
        return "\n".join([*lines, f"parametrisation: {self.parametrisation}"])


def _shown(one: SizeExponent) -> str:
    return f"{with_error(one.value, one.error)} [{one.low:.2f}, {one.high:.2f}]"


def coordinate_check(
    make_model: Callable[[int, int], Any],
    widths: Sequence[int],
    inputs: np.ndarray,
    targets: np.ndarray,
    *,
    learning_rate: float,
    optimiser: str | Callable[[int, Any], Any] = "sgd",
    loss: str | Callable[[Any, Any], Any] = "square",
    steps: int = 3,
    seeds: int = 8,
) -> CoordinateCheck:
    r"""The exponents of a network's layers and of their updates with its width.

    Args:
        make_model: Called with a width and a seed; returns the network at initialisation: an
            Equinox module, a Flax NNX module, a `torch.nn.Module`, or a pair (model, parameters) of
            a function f(parameters, inputs) in JAX or a Flax Linen module.
        widths: At least three; with five, from 64 to 1024, an exponent is known within 0.1 to 0.25.
        inputs, targets: One batch, used in every step. Targets have a row for each example; for
            cross-entropy they are the numbers of classes.
        learning_rate: The same at all widths and in all layers, unless the optimiser says
            otherwise.
        optimiser: "sgd", "adam", or a function of the width and of the model (of the parameters in
            JAX) that returns an optimiser of optax or of `torch.optim`, as for learning rates that
            depend on layer and width; the predictions of both optimisers are then compared.
        loss: "square" is half the mean over examples of |f - y|^2, "cross-entropy" the mean with
            logits f; or a function of outputs and targets.
        steps: Of training, at least 1.
        seeds: Of the initialisation, at least 2.

    Returns:
        A `CoordinateCheck`; print it.

    Raises:
        ValueError: for fewer than three widths, networks whose layers differ in number, a change
            that is 0 or not finite (a read-out that starts at 0 moves no hidden layer in the first
            step), and what `width` refuses.

    Source: the predictions are those of Yang and Hu 2021 and Yang et al. 2022; intervals as in
        `width`.

    >>> import jax
    >>> from orderparam.networks import fully_connected
    >>> def made(width, seed):
    ...     network = fully_connected(1, width, "tanh")
    ...     start = network.network(jax.random.key(seed), 3)
    ...     return (lambda w, x: start.with_weights(w)(x)), start.weights
    >>> x = np.random.default_rng(0).normal(size=(20, 3))
    >>> found = coordinate_check(made, [16, 32, 64], x, x[:, :1], learning_rate=0.01, steps=1)
    >>> 'NTK with gradient descent' in found.parametrisation
    True
    """
    import pandas

    chosen = [int(one) for one in widths]
    if len(set(chosen)) < FEWEST or min(chosen) < 1:
        raise ValueError(f"widths = {list(widths)}: must be at least {FEWEST} different widths")
    if steps < 1 or seeds < 2:
        raise ValueError(f"steps = {steps}, seeds = {seeds}: must be at least 1 and 2")
    if not 0 < learning_rate < np.inf:
        raise ValueError(f"learning_rate = {learning_rate}: must be > 0")
    for name, value, allowed in (("optimiser", optimiser, OPTIMISERS), ("loss", loss, LOSSES)):
        if not callable(value) and value not in allowed:
            raise ValueError(
                f"{name} = {value!r}: must be {' or '.join(map(repr, allowed))}, or a function"
            )
    rows: list[dict[str, float]] = []
    names: tuple[str, ...] = ()
    for size in sorted(set(chosen)):
        for seed in range(seeds):
            made = make_model(size, seed)
            model, parameters = made if isinstance(made, tuple) else (made, None)
            train = _trained_in_torch if framework_of(model) == "torch" else _trained_in_jax
            states, errors = train(
                model, parameters, np.asarray(inputs), np.asarray(targets), size,
                learning_rate, optimiser, loss, steps,
            )  # fmt: skip
            found = tuple(f"h{k}" for k in range(1, len(states[0]) + 1))
            if names and found != names:
                raise ValueError(
                    f"width {size} has {len(found)} layers, a smaller one {len(names)}: must be "
                    "equal"
                )
            names = found
            row = {"width": size, "learning_rate": learning_rate, "seed": seed}
            row |= {f"loss_{step}": error for step, error in enumerate(errors)}
            rows.append(row | _sizes(names, states, size))
    table = pandas.DataFrame(rows)
    compared = None if callable(optimiser) else optimiser
    of_steps = {
        step: width(
            table,
            activations=names,
            updates=[f"{name} step {step}" for name in names],
            optimiser=compared,  # type: ignore[arg-type]  # it was checked
        )
        for step in range(1, steps + 1)
    }
    updates = {
        step: dict(zip(names, transfer.update.values())) for step, transfer in of_steps.items()
    }
    return CoordinateCheck(table, names, of_steps[1], updates)


def _sizes(
    names: Sequence[str], states: Sequence[Sequence[NetworkLayer]], size: int
) -> dict[str, float]:
    """The root mean squares of the layers at the start, and of their changes."""
    found = {}
    for k, name in enumerate(names):
        values = [np.asarray(state[k].outputs, np.float64) for state in states]
        found[name] = _rms(values[0])
        for step, value in enumerate(values[1:], 1):
            found[f"{name} step {step}"] = change = _rms(value - values[0])
            if not 0 < change < np.inf:
                raise ValueError(
                    f"{name} at width {size}: its change after {step} steps is {change:g}: must be "
                    "positive and finite (a read-out that starts at 0 moves no hidden layer in the "
                    "first step; a learning rate that is too large diverges)"
                )
    return found


def _rms(values: np.ndarray) -> float:
    with np.errstate(over="ignore"):  # it is refused
        return float(np.sqrt(np.mean(values**2)))


def _trained_in_jax(
    model: Any,
    parameters: Any,
    x: np.ndarray,
    y: np.ndarray,
    size: int,
    rate: float,
    optimiser: Any,
    loss: Any,
    steps: int,
) -> tuple[list[tuple[NetworkLayer, ...]], list[float]]:
    """The layers and the losses at the start and after each step."""
    import jax
    import jax.numpy as jnp
    import optax

    function, theta = jax_function(model, parameters)
    given, goal = jnp.asarray(x), jnp.asarray(y)

    def measured(outputs: Any, targets: Any) -> Any:
        if callable(loss):
            return loss(outputs, targets)
        if loss == "cross-entropy":
            each = optax.losses.softmax_cross_entropy_with_integer_labels(outputs, targets)
            return jnp.mean(each)
        gap = outputs.reshape(len(targets), -1) - targets.reshape(len(targets), -1)
        return jnp.mean(jnp.sum(gap**2, axis=1)) / 2

    moves = {"sgd": optax.sgd, "adam": optax.adam}
    chosen = optimiser(size, theta) if callable(optimiser) else moves[optimiser](rate)
    slope = jax.jit(jax.value_and_grad(lambda w: measured(function(w, given), goal)))
    moments, states, errors = chosen.init(theta), [layers_of(function, theta, x)], []
    for _ in range(steps):
        error, gradient = slope(theta)
        change, moments = chosen.update(gradient, moments, theta)
        theta = optax.apply_updates(theta, change)
        states.append(layers_of(function, theta, x))
        errors.append(float(error))
    return states, [*errors, float(slope(theta)[0])]


def _trained_in_torch(
    model: Any,
    parameters: Any,
    x: np.ndarray,
    y: np.ndarray,
    size: int,
    rate: float,
    optimiser: Any,
    loss: Any,
    steps: int,
) -> tuple[list[tuple[NetworkLayer, ...]], list[float]]:
    """The records of training a PyTorch module; the module itself is trained."""
    import torch

    from orderparam.observables.torch_network import loaded, read_torch

    module = (model if parameters is None else loaded(model, parameters)).eval()
    kind = next(module.parameters())
    given = torch.as_tensor(x).to(kind)
    goal = torch.as_tensor(y).to(kind.device)
    goal = goal.to(kind.dtype) if goal.is_floating_point() else goal

    def measured(outputs: Any) -> Any:
        if callable(loss):
            return loss(outputs, goal)
        if loss == "cross-entropy":
            return torch.nn.functional.cross_entropy(outputs, goal.long())
        gap = outputs.reshape(len(goal), -1) - goal.reshape(len(goal), -1)
        return (gap**2).sum(dim=1).mean() / 2

    moves = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
    chosen = (
        optimiser(size, module)
        if callable(optimiser)
        else moves[optimiser](module.parameters(), lr=rate)
    )
    states, errors = [read_torch(module, x).layers], []
    for _ in range(steps):
        chosen.zero_grad()
        error = measured(module(given))
        error.backward()
        chosen.step()
        states.append(read_torch(module, x).layers)
        errors.append(error.item())
    with torch.no_grad():
        return states, [*errors, measured(module(given)).item()]
