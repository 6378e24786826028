"""Bayesian networks of finite width on a fixed training set. The number P of examples is of the
order of the number N of hidden units, and there is no average over the data.

A network f with Gaussian weights is sampled at temperature T from

    p(W) ~ exp{ -(1/T) (1/2) sum_mu |y_mu - f(x_mu)|^2 - (1/2) sum_l |W^l|^2 / variance_l }

so that T is the variance of the observation noise and the prior does not depend on T. Pacelli,
Ariosto, Pastore, Ginelli, Gherardi, Rotondo 2023 write the energy at temperature T with a weight
decay, U = loss + (T/2) sum_l lambda_l |W^l|^2; the variances are then 1/lambda_l. There are no
biases.
"""

import abc
import math
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.fields import Refused
from orderparam.core.system import System, nearest, parameter, structure
from orderparam.data import Dataset, Targets, apply_task, load, standardise
from orderparam.gaussian import Activation, activation, activation_names
from orderparam.kernels.window import Window

# ------------------------------------------------------------------------------------------------
# The patches of a signal or an image that the units of a convolutional layer see: any mask, stride
# and zero padding.

Sides = int | tuple[int, ...]


def sides(name: str, value: Sides, rank: int) -> tuple[int, ...]:
    """The value as a tuple with one integer for every axis of the grid; a single integer stands for
    all axes.

    Raises:
        ValueError: naming a tuple of another length.
    """
    values = (value,) * rank if isinstance(value, int) else value
    if len(values) != rank:
        raise Refused(
            f"{name} = {value!r}: must be an integer, or a tuple of {rank}, one for each axis"
        )
    return values


def patch_grid(
    shape: tuple[int, ...], mask: Sides, stride: Sides, padding: Sides
) -> tuple[int, ...]:
    """Shape of the grid of patches of one example of shape (*grid, channel).

    The number of patches along an axis is 1 + floor((side + 2 padding - mask) / stride).

    Raises:
        ValueError: for a mask, stride or padding that does not fit.
    """
    rank = len(shape) - 1
    if rank < 1:
        raise Refused(
            f"inputs of shape {shape}: must be (*grid, channel), such as (8, 8, 1) for an image"
        )
    masks, strides, paddings = (
        sides("mask", mask, rank),
        sides("stride", stride, rank),
        sides("padding", padding, rank),
    )
    padded = tuple(side + 2 * p for side, p in zip(shape, paddings))
    for side, m in zip(padded, masks):
        if m > side:
            raise Refused(
                f"mask = {mask!r}: must be at most {side}, the side of the input with its padding"
            )
    return Window(masks, strides, "valid").output_grid(padded)


def pad(inputs: Float[Array, "example *input"], padding: Sides) -> Float[Array, "example *padded"]:
    """The inputs with `padding` zeros on every side of their grid."""
    paddings = sides("padding", padding, inputs.ndim - 2)
    return jnp.pad(inputs, [(0, 0), *((p, p) for p in paddings), (0, 0)])


def patches(
    inputs: Float[Array, "example *input"], mask: Sides, stride: Sides, padding: Sides
) -> Float[Array, "example patch pixel"]:
    """The patches x_i of every example, i = 1..patches in row-major order.

    The pixels of a patch run over (*mask, channel). Pixels outside of the image are 0.
    """
    grid = patch_grid(inputs.shape[1:], mask, stride, padding)
    padded = pad(inputs, padding)
    window = Window(sides("mask", mask, len(grid)), sides("stride", stride, len(grid)), "valid")
    seen = jnp.stack(list(window.shifted(padded, padded.shape[1:-1], 1)), axis=-2)
    return seen.reshape(inputs.shape[0], math.prod(grid), -1)


class BayesianNetwork(System):
    r"""A Bayesian network on given data: the fields for data and temperature that all systems of
    this topic have.

    `inputs` have the shape (train, *input), with *input (input_dim,), or (*grid, channel) for
    signals and images; `targets` have the shape (train,) or (train, output). The test points have
    the same shapes. Errors are summed over the outputs. The first `n_train` training examples are
    used; None uses all of them.

    Raises:
        ValueError: for inconsistent shapes, or n_train larger than the number of examples.
    """

    inputs: Float[Array, "train *input"] = parameter("training inputs")
    targets: Float[Array, "train"] | Float[Array, "train output"] = parameter("their targets")
    test_inputs: Float[Array, "test *input"] = parameter("test inputs")
    test_targets: Float[Array, "test"] | Float[Array, "test output"] = parameter("their targets")
    temperature: float = parameter(
        "Langevin temperature T: variance of the observation noise", minimum=0, kw_only=True
    )
    readout_variance: float = parameter(
        "prior variance r of the read-out weights", above=0, default=1.0, kw_only=True
    )
    n_train: int | None = structure(
        "number of training examples used, the first ones; None: all",
        minimum=1,
        default=None,
        kw_only=True,
    )
    activation: Activation = structure(
        "nonlinearity", convert=activation, choices=activation_names, default="erf", kw_only=True
    )

    def __check_init__(self) -> None:
        name = type(self).__name__
        for inputs, targets in (("inputs", "targets"), ("test_inputs", "test_targets")):
            x, y = getattr(self, inputs).shape, getattr(self, targets).shape
            if len(x) < 2 or x[0] != y[0]:
                raise ValueError(
                    f"{name}.{inputs} has shape {x} and {targets} {y}: must be (examples, ...) and "
                    "(examples,) or (examples, output), with equally many examples"
                )
        train, test = (
            (self.inputs.shape[1:], self.targets.shape[1:]),
            (self.test_inputs.shape[1:], self.test_targets.shape[1:]),
        )
        if train != test:
            raise ValueError(
                f"{name}: training examples map {train[0]} to {train[1]}, test examples {test[0]} "
                f"to {test[1]}"
            )
        if self.n_train is not None and self.n_train > self.inputs.shape[0]:
            raise ValueError(
                f"{name}.n_train = {self.n_train}: must be at most {self.inputs.shape[0]}, the "
                "examples there are"
            )

    @property
    def train(self) -> tuple[Float[Array, "train *input"], Float[Array, "train output"]]:
        """Inputs and targets of the training examples that are used, with one column for each
        output.
        """
        x, y = self.inputs[: self.n_train], self.targets[: self.n_train]
        return x, y.reshape(y.shape[0], -1)

    @property
    def test(self) -> tuple[Float[Array, "test *input"], Float[Array, "test output"]]:
        """Inputs and targets of the test points, with one column for each output."""
        return self.test_inputs, self.test_targets.reshape(self.test_targets.shape[0], -1)

    @property
    def outputs(self) -> int:
        """The number D of outputs."""
        return 1 if self.targets.ndim == 1 else self.targets.shape[1]

    depth: eqx.AbstractVar[int]

    @property
    @abc.abstractmethod
    def widths(self) -> Float[Array, "layer"]:
        """The widths N_l of all hidden layers."""

    @property
    @abc.abstractmethod
    def variances(self) -> Float[Array, "layer"]:
        """The prior variances of the weights that lead into each hidden layer."""

    @property
    def places(self) -> int:
        """The number of places whose features are read out separately: patches, or one."""
        return 1


class FullyConnected(BayesianNetwork):
    r"""A Bayesian fully connected network of finite width on given data.

    $$ h^1 = W^0 x / \sqrt d, \qquad h^{l+1} = W^l \phi(h^l) / \sqrt{N_l}, \qquad
       f = W^L \phi(h^L) / \sqrt{N_L} $$

    $$ p(W) \propto \exp\Big\{ -\frac{1}{2T} \sum_\mu |y_\mu - f(x_\mu)|^2
       - \sum_l \frac{|W^l|^2}{2 v_l} \Big\} $$

    with L = `depth` hidden layers, $N_l$ = `width`, T = `temperature`, $v_l$ = `weight_variance`
    for l < L and $v_L$ = `readout_variance`. `width` and `weight_variance` may be arrays with one
    entry for each hidden layer. There are no biases.

    Raises:
        ValueError: for inconsistent shapes.

    Source: Pacelli et al. (2023), where the variances are 1/lambda_l.

    >>> x = np.eye(3)
    >>> FullyConnected(x, x[:, 0], x, x[:, 0], width=8, temperature=0.1, depth=2).widths.tolist()
    [8.0, 8.0]
    """

    width: float | Float[Array, "layer"] = parameter(
        "hidden width N, of all hidden layers or of each", above=0
    )
    weight_variance: float | Float[Array, "layer"] = parameter(
        "prior variance 1/lambda_l of the hidden weights", above=0, default=1.0
    )
    depth: int = structure("number L of hidden layers", minimum=1, default=1)

    def __check_init__(self) -> None:
        if self.inputs.ndim != 2:
            raise ValueError(
                f"FullyConnected.inputs has shape {self.inputs.shape}: must be (examples, "
                "input_dim)"
            )
        for field in ("width", "weight_variance"):
            if (
                isinstance(value := getattr(self, field), Array)
                and value.ndim > 0
                and value.shape != (self.depth,)
            ):
                raise ValueError(
                    f"FullyConnected.{field} = {value}: must be one number, or {self.depth}, one a "
                    "hidden layer"
                )

    @property
    def widths(self) -> Float[Array, "layer"]:
        """The widths N_1 .. N_L of the hidden layers."""
        return jnp.broadcast_to(jnp.asarray(self.width, float), (self.depth,))

    @property
    def variances(self) -> Float[Array, "layer"]:
        """Prior variances of the hidden weights W^0 .. W^{L-1}."""
        return jnp.broadcast_to(jnp.asarray(self.weight_variance, float), (self.depth,))


class BayesianPatchNetwork(BayesianNetwork):
    r"""A Bayesian network with one hidden layer, which has units at every patch, and a read-out of
    all of them.

    $$ f(x) = \frac{1}{\sqrt{N_c N_p}} \sum_c \sum_i v_{ci}\, \phi(h_{ci}), \qquad
       h_{ci} = W \cdot x_i / \sqrt d $$

    with $N_c$ = `channels` units at each of the $N_p$ patches $x_i$ of d pixels. `mask`, `stride`
    and `padding` are integers, or tuples with one integer for each axis of the grid. A patch
    includes all input channels.

    Raises:
        ValueError: for a mask, stride or padding that does not fit the inputs.
    """

    channels: float = parameter("number of hidden channels N_c", above=0)
    mask: Sides = structure("side of the patches", minimum=1)
    stride: Sides | None = structure(
        "distance between patches; None: the mask, so that patches do not overlap",
        minimum=1,
        default=None,
    )
    padding: Sides = structure("zeros added on every side", minimum=0, default=0)
    weight_variance: float = parameter(
        "prior variance 1/lambda_0 of the hidden weights", above=0, default=1.0
    )

    depth = 1

    def __check_init__(self) -> None:
        self.patch_grid  # noqa: B018  raises for a mask, stride or padding that does not fit

    @property
    def widths(self) -> Float[Array, "layer"]:
        """The number N_c of channels of the hidden layer."""
        return jnp.asarray(self.channels, float)[None]

    @property
    def variances(self) -> Float[Array, "layer"]:
        """Prior variance of the hidden weights."""
        return jnp.asarray(self.weight_variance, float)[None]

    @property
    def steps(self) -> Sides:
        """The stride."""
        return self.mask if self.stride is None else self.stride

    @property
    def patch_grid(self) -> tuple[int, ...]:
        """Shape of the grid of patches."""
        return patch_grid(self.inputs.shape[1:], self.mask, self.steps, self.padding)

    @property
    def patch_count(self) -> int:
        """The number N_p of patches."""
        return math.prod(self.patch_grid)

    @property
    @abc.abstractmethod
    def pooled(self) -> bool:
        """True if the read-out sees only the mean over all patches."""

    @property
    def places(self) -> int:
        return 1 if self.pooled else self.patch_count

    def padded(self, inputs: Float[Array, "example *input"]) -> Float[Array, "example *padded"]:
        """The inputs padded with zeros."""
        return pad(inputs, self.padding)

    def patches(
        self, inputs: Float[Array, "example *input"]
    ) -> Float[Array, "example patch pixel"]:
        """The patches x_i of every example."""
        return patches(inputs, self.mask, self.steps, self.padding)


class Convolutional(BayesianPatchNetwork):
    r"""A Bayesian convolutional network with one hidden layer, whose weights are shared between the
    patches.

    $$ f(x) = \frac{1}{\sqrt{N_c N_p}} \sum_c \sum_i v_{ci}\, \phi(h_{ci}), \qquad
       h_{ci} = W_c \cdot x_i / \sqrt d $$

    with $N_c$ = `channels` and $N_p$ patches $x_i$ of d pixels. With `readout` "average" (global
    average pooling) it is $f = \frac{1}{\sqrt{N_c}} \sum_c v_c \frac{1}{N_p} \sum_i \phi(h_{ci})$.
    Prior and likelihood are those of `FullyConnected`.

    Raises:
        ValueError: for a mask, stride or padding that does not fit the inputs.

    Source: Aiudi et al. (2025).

    >>> x = np.ones((2, 6, 1))
    >>> Convolutional(x, [1.0, 0.0], x, [1.0, 0.0], channels=4, mask=3, temperature=0.1).patch_count
    2
    """

    readout: Literal["dense", "average"] = structure("what the read-out sees", default="dense")

    @property
    def pooled(self) -> bool:
        return self.readout == "average"


class LocallyConnected(BayesianPatchNetwork):
    r"""A Bayesian locally connected network: a convolutional network without weight sharing, in
    which every patch has its own weights.

    $$ f(x) = \frac{1}{\sqrt{N_c N_p}} \sum_c \sum_i v_{ci}\, \phi(h_{ci}), \qquad
       h_{ci} = W_{ci} \cdot x_i / \sqrt d $$

    with the fields of `Convolutional`.

    Raises:
        ValueError: for a mask, stride or padding that does not fit the inputs.

    Source: Aiudi et al. (2025).

    >>> x = np.ones((2, 6, 1))
    >>> LocallyConnected(x, [1.0, 0.0], x, [1.0, 0.0], channels=4, mask=3, temperature=0.1).places
    2
    """

    pooled = False


# ------------------------------------------------------------------------------------------------
# Learning problems for the systems of this topic: real images, and targets that use some of several
# patches.

# data set and learning problem for each name; the files of MNIST and CIFAR-10 are looked for in
# $ORDERPARAM_DATA (`orderparam.data.load`)
PROBLEMS = {
    "digits": ("digits", "even-odd"),
    "mnist": ("mnist", "0-vs-1"),
    "cifar10": ("cifar10", "automobile-vs-airplane"),
}


def split(dataset: Dataset, targets: Targets, n_train: int, n_test: int) -> dict[str, Any]:
    """Data fields of a system, whose training set is the first n_train examples and whose test set
    is the last n_test examples.

    Raises:
        ValueError: if there are not enough examples for both.
    """
    if n_train < 1 or n_test < 1 or n_train + n_test > dataset.examples:
        raise ValueError(
            f"n_train = {n_train}, n_test = {n_test}: must be at least 1, together at most "
            f"{dataset.examples}"
        )
    x, y = dataset.inputs, targets.values
    return {
        "inputs": jnp.asarray(x[:n_train]),
        "targets": jnp.asarray(y[:n_train]),
        "test_inputs": jnp.asarray(x[-n_test:]),
        "test_targets": jnp.asarray(y[-n_test:]),
    }


def image_data(name: str, n_train: int, n_test: int) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The data fields of a system on "digits", "mnist" or "cifar10", and the shape (*grid, channel)
    of an image.

    Pixels are standardised with one mean and one standard deviation for the whole data set.
    """
    if name not in PROBLEMS:
        raise ValueError(f"data = {name!r}{nearest(name, list(PROBLEMS))}")
    data, problem = PROBLEMS[name]
    dataset, targets = apply_task(standardise(load(data)), problem)
    assert dataset.image_shape is not None
    shape = dataset.image_shape if len(dataset.image_shape) == 3 else (*dataset.image_shape, 1)
    return split(dataset, targets, n_train, n_test), shape


def as_images(fields: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """The data fields with inputs of shape (examples, *grid, channel)."""
    return {
        name: value.reshape(-1, *shape) if name.endswith("inputs") else value
        for name, value in fields.items()
    }


def dense(
    data: str, n_train: int, n_test: int, width: float, temperature: float, **options: Any
) -> FullyConnected:
    """A fully connected network on real images; `options` are fields of `FullyConnected`."""
    return FullyConnected(
        **image_data(data, n_train, n_test)[0], width=width, temperature=temperature, **options
    )


def patch_teacher(
    target: str, n_train: int, n_test: int, patches: int = 4, pixels: int = 10, seed: int = 0
) -> dict[str, Any]:
    """The data fields of a target on independent Gaussian patches x_i, some of which the target
    uses.

    With one fixed unit vector w and s_i = w . x_i the target is sum_i s_i / sqrt(patches)
    ("shared"), s_1 ("one"), or (s_1 - s_2) / sqrt 2 ("antisymmetric"). Inputs have the shape
    (examples, patches * pixels, 1): a signal of one channel, to be seen with a mask of `pixels`.
    """
    random = np.random.RandomState(seed)  # the generator of the reference values
    direction = random.randn(pixels)
    direction /= np.linalg.norm(direction)
    x = random.randn(n_train + n_test, patches, pixels)
    s = x @ direction
    forms = {
        "shared": s.sum(1) / np.sqrt(patches),
        "one": s[:, 0],
        "antisymmetric": (s[:, 0] - s[:, 1]) / np.sqrt(2),
    }
    if target not in forms:
        raise ValueError(f"target = {target!r}{nearest(target, list(forms))}")
    signals, y = jnp.asarray(x.reshape(len(x), -1, 1)), jnp.asarray(forms[target])
    return {
        "inputs": signals[:n_train],
        "targets": y[:n_train],
        "test_inputs": signals[n_train:],
        "test_targets": y[n_train:],
    }


def flat(fields: dict[str, Any]) -> dict[str, Any]:
    """The data fields with inputs as vectors, for fully connected networks."""
    return {
        name: value.reshape(value.shape[0], -1) if name.endswith("inputs") else value
        for name, value in fields.items()
    }
