"""An architecture: one object that yields both the finite network and its infinite-width limit."""

import math
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num, PRNGKeyArray

from orderparam.core.system import Record, is_number, parameter, structure
from orderparam.kernels.covariance import (
    Covariance,
    Kernels,
    Moments,
    Parametrization,
    input_covariance,
)
from orderparam.kernels.matrix import kernel_matrices, tile_size
from orderparam.networks.affine import Weights
from orderparam.networks.composition import Serial
from orderparam.networks.dense import Dense
from orderparam.networks.layer import Layer, Shape
from orderparam.networks.pooling import Flatten, GlobalAveragePool

Scaling = Literal["ntk", "standard", "mean_field"]


class Architecture(Record):
    """Layers together with the scaling of their weights.

    In every scaling the prior over functions is that of weights N(0, weight_variance / fan_in) and
    biases N(0, bias_variance). The scaling determines which numbers are trained, and with them the
    tangent kernel, and the size of the output:

      ntk         trained: u ~ N(0, 1), weight = sqrt(weight_variance / fan_in) u
          (Jacot et al. 2018)
      standard    trained: the weights themselves
      mean_field  as ntk, with the output divided by sqrt(chi): the read-out variance becomes
          readout_variance / chi. The posterior that goes with it has its temperature divided by chi
          as well (`posterior_temperature`). At infinite width this leaves the posterior mean as it
          is and divides the posterior covariance by chi; with chi of the order of the width, a
          finite network learns features (Naveh and Ringel 2021; Seroussi et al. 2023).

    chi: mean-field scale, 1 in the other two scalings. Raises `ValueError` for an unknown scaling,
    for chi <= 0, and for chi other than 1 without mean-field scaling.
    """

    layers: Serial
    scaling: Scaling = structure(
        "which numbers are trained, and the size of the output", default="ntk"
    )
    chi: Num[Array, ""] | float = parameter("mean-field scale", above=0, default=1.0)

    def __check_init__(self) -> None:
        if self.scaling != "mean_field" and is_number(self.chi) and self.chi != 1:
            raise ValueError(
                f"Architecture.chi = {self.chi} with scaling {self.scaling!r}: only 'mean_field' "
                "has chi other than 1"
            )

    def posterior_temperature(self, temperature: Num[Array, ""] | float) -> Num[Array, ""] | float:
        """The temperature of the posterior in this scaling: `temperature` / chi."""
        return temperature / self.chi

    # --------------------------------------------------------------------------------- finite width

    def draw(self, key: PRNGKeyArray, input_shape: int | Shape) -> Any:
        """Whitened parameters of one network of the prior: a pytree of independent standard
        normals.

        input_shape: shape of one input, (input_dim,) or (*grid, channels); an integer means
        (input_dim,). Raises `ValueError` when a width is not fixed or when the layers do not fit
        the shape.
        """
        shape = _shape(input_shape)
        output = self.layers.output_shape(shape)
        if len(output) != 1:
            raise ValueError(
                f"the network's output has shape {output}: end with Flatten or GlobalAveragePool, "
                "and Dense"
            )
        return self.layers.draw(key, shape)

    def apply(
        self, whitened: Any, x: Float[Array, "example *input"]
    ) -> Float[Array, "example output"]:
        """f(x) of the network with whitened parameters u: the same function in every scaling (but
        for sqrt(chi)).

        With u ~ N(0, 1) as prior, the posterior at temperature T has the potential L(u) / T + |u|^2
        / 2.
        """
        return self.layers(self._physical(whitened), x) / jnp.sqrt(self.chi)

    def features(
        self, whitened: Any, x: Float[Array, "example *input"]
    ) -> Float[Array, "example feature"]:
        """Phi(x), everything before the read-out, scaled so that f(x) = Phi(x) u^T with the
        whitened read-out u = (weight, bias).

        Phi Phi^T is therefore the kernel of the network with its read-out integrated over the
        prior. The last layer must be a Dense layer; its own parameters in `whitened` are not used,
        except for their shapes.
        """
        *hidden, readout = self.layers.layers
        if not isinstance(readout, Dense):
            raise ValueError(
                f"the last layer is {type(readout).__name__}: features need a Dense read-out"
            )
        weights = self._physical(whitened)
        phi = Serial(tuple(hidden))(weights[:-1], x)
        scale: Weights = readout.multipliers(whitened[-1])
        phi = scale.weight * phi
        if scale.bias is not None:
            phi = jnp.concatenate([phi, jnp.full((phi.shape[0], 1), scale.bias)], axis=1)
        return phi / jnp.sqrt(self.chi)

    def network(self, key: PRNGKeyArray, input_shape: int | Shape) -> "Network":
        """A network drawn from the prior, to be trained in this architecture's scaling. Arguments
        as for `draw`."""
        return self.network_from_whitened(self.draw(key, input_shape))

    def network_from_whitened(self, whitened: Any) -> "Network":
        """The network whose function is `apply(whitened, .)`."""
        return Network(self, self._physical(whitened) if self.scaling == "standard" else whitened)

    def _physical(self, whitened: Any) -> Any:
        return jax.tree.map(jnp.multiply, self.layers.multipliers(whitened), whitened)

    # ------------------------------------------------------------------------------- infinite width

    def kernel(
        self,
        x1: Float[Array, "first *input"],
        x2: Float[Array, "second *input"] | None = None,
        *,
        row_batch: int | None = None,
    ) -> Kernels:
        """K(x, x') and Theta(x, x') of the infinitely wide network; x2=None means x1 against
        itself, exactly symmetric.

        row_batch: the matrix is computed in tiles of at most this many rows, which bounds the
        memory for temporaries; None picks a size that keeps each temporary within a few tens of
        megabytes, pairs of pixels included.

        In "standard" scaling Theta depends on the widths, which must then be given (see
        `orderparam.kernels.nngp.affine`). Where the derivative of an activation is not a function
        (sign, step), Theta is infinite and only `nngp` is finite. Raises `ValueError` for inputs
        that are not finite, or whose shape does not fit the layers or each other.
        """
        if self.scaling == "standard" and not _widths_known(self.layers):
            raise ValueError(
                "the tangent kernel in 'standard' scaling grows with the widths: give them, or use "
                "scaling='ntk'"
            )
        moments = self._matrices(x1, x2, row_batch, ("nngp", "ntk"))
        (nngp, nngp_diagonal), (ntk, ntk_diagonal) = moments["nngp"], moments["ntk"]
        return Kernels(nngp=nngp, ntk=ntk, nngp_diagonal=nngp_diagonal, ntk_diagonal=ntk_diagonal)

    def nngp(
        self,
        x1: Float[Array, "first *input"],
        x2: Float[Array, "second *input"] | None = None,
        *,
        row_batch: int | None = None,
    ) -> Float[Array, "first second"]:
        """Only K(x, x'), at half the cost of `kernel`; the arguments are the same."""
        return self._matrices(x1, x2, row_batch, ("nngp",))["nngp"][0]

    def variance(self, x: Float[Array, "example *input"]) -> Float[Array, "example"]:
        """K(x, x) of each input, at a cost that grows with the number of inputs, not with its
        square. All inputs are treated at once: pooled convolutional networks need memory for all
        pairs of pixels of each. Raises the errors of `kernel` for inputs that do not fit."""
        return _variances(_traceable(self), _input("x", x))

    def _matrices(
        self, x1: Any, x2: Any, row_batch: int | None, names: tuple[str, ...]
    ) -> dict[str, tuple[Array, Array]]:
        first, second = _inputs(x1, x2)
        if row_batch is None:
            row_batch = tile_size(first, self.layers.needs_pixel_pairs(False))
        elif not isinstance(row_batch, int | np.integer) or row_batch < 1:
            raise ValueError(f"row_batch = {row_batch!r}: must be a positive integer or None")
        return kernel_matrices(_traceable(self).covariance, first, second, int(row_batch), names)

    def local_kernels(
        self, x1: Float[Array, "first *input"], x2: Float[Array, "second *input"] | None = None
    ) -> Float[Array, "pixel pixel first second"]:
        """K_ij(x, x') between pixel i of x and pixel j of x', of the features that are flattened or
        pooled for the read-out.

        Pixels (the patches of a shallow network) are numbered row by row. The flattened network has
        nngp = readout_variance (1/pixels) sum_i K_ii, the pooled one readout_variance (1/pixels^2)
        sum_ij K_ij; at finite width the convolutional network weighs all of them (Aiudi et al.
        2025). Memory: pixels^2 entries for every pair of inputs. Raises `ValueError` for an
        architecture without Flatten or GlobalAveragePool, and for the bad inputs that `kernel`
        refuses.
        """
        first, second = _inputs(x1, x2)
        return _local_kernels(_traceable(self), first, first if second is None else second)

    def covariance(
        self, x1: Float[Array, "first *input"], x2: Float[Array, "second *input"] | None = None
    ) -> Covariance:
        """The output covariance with the self-moments of x1 and x2: `kernel` without jit, batching
        and symmetrisation."""
        pixel_pairs = self.layers.needs_pixel_pairs(False)
        parametrization: Parametrization = "standard" if self.scaling == "standard" else "ntk"
        inputs = input_covariance(x1, x2, pixel_pairs, parametrization)
        output = self.layers.covariance(inputs, False)
        if output.grid:
            raise ValueError(
                f"the output still has {output.grid} pixels: end with Flatten or "
                "GlobalAveragePool, and Dense"
            )
        if self.scaling != "mean_field":
            return output
        return output.map(lambda m: Moments(m.nngp / self.chi, m.ntk / self.chi))


@eqx.filter_jit
def _variances(architecture: Architecture, x: Array) -> Array:
    return architecture.covariance(x).first.nngp


def of_width(architecture: Architecture, width: int) -> Architecture:
    """The architecture with this width in all layers whose width is not fixed."""

    def fill(layer: Any) -> Any:
        return (
            layer.with_(width=width) if isinstance(layer, Dense) and layer.width is None else layer
        )

    return jax.tree.map(fill, architecture, is_leaf=lambda layer: isinstance(layer, Dense))


class Network(eqx.Module):
    """A finite network: an architecture with weights. Callable on a batch, (examples, *input) ->
    (examples, outputs).

    weights: the trained numbers, in the units of the architecture's scaling (of unit variance for
    "ntk" and "mean_field").
    """

    architecture: Architecture
    weights: Any

    def __call__(self, x: Float[Array, "example *input"]) -> Float[Array, "example output"]:
        if self.architecture.scaling == "standard":
            return self.architecture.layers(self.weights, x)
        return self.architecture.apply(self.weights, x)

    def with_weights(self, weights: Any) -> "Network":
        """The network with other weights."""
        return Network(self.architecture, weights)


def _shape(input_shape: int | Shape) -> Shape:
    shape = (input_shape,) if isinstance(input_shape, int | np.integer) else tuple(input_shape)
    if not shape or any(int(size) != size or size < 1 for size in shape):
        raise ValueError(
            f"input_shape = {input_shape!r}: must be positive integers, (input_dim,) or (*grid, "
            "channels)"
        )
    return tuple(int(size) for size in shape)


def _inputs(x1: Any, x2: Any) -> tuple[Array, Array | None]:
    """Inputs in float64 of equal shape, checked for NaN and infinity when they are
    concrete."""
    first = _input("x1", x1)
    if x2 is None:
        return first, None
    second = _input("x2", x2)
    if first.shape[1:] != second.shape[1:]:
        raise ValueError(
            f"x1 and x2 have inputs of different shapes {first.shape[1:]} and {second.shape[1:]}"
        )
    return first, second


def _input(name: str, x: Any) -> Array:
    if jnp.iscomplexobj(x):
        raise ValueError(
            f"{name} holds complex numbers: inputs must be real; give the real and the imaginary "
            "part as inputs of their own"
        )
    array = jnp.asarray(x, dtype=float)
    if array.ndim < 2 or 0 in array.shape:
        raise ValueError(
            f"{name} has shape {array.shape}: must be (examples, input_dim) or (examples, *grid, "
            "channels)"
        )
    if not isinstance(array, jax.core.Tracer) and not bool(jnp.isfinite(array).all()):
        raise ValueError(f"{name} contains NaN or infinity: inputs must be finite")
    return array


def _widths_known(layer: Layer) -> bool:
    inner = (*getattr(layer, "layers", ()), *getattr(layer, "branches", ()))
    own = (getattr(layer, name, 0) for name in ("width", "channels"))
    return None not in own and all(_widths_known(one) for one in inner)


def _traceable(architecture: Architecture) -> Architecture:
    """The layers with all numbers as arrays, so that another variance or width does not compile the
    kernel again."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if is_number(leaf) else leaf, architecture)


@eqx.filter_jit
def _local_kernels(architecture: Architecture, x1: Array, x2: Array) -> Array:
    layers = architecture.layers.layers
    ends = [i for i, layer in enumerate(layers) if isinstance(layer, Flatten | GlobalAveragePool)]
    if not ends:
        raise ValueError("local kernels need an architecture with Flatten or GlobalAveragePool")
    before = Serial(layers[: ends[0]])
    inputs = input_covariance(x1, x2, before.needs_pixel_pairs(True), "ntk")
    local = before.covariance(inputs, True)
    pixels = math.prod(local.grid)
    return jnp.moveaxis(
        local.cross.nngp.reshape(x1.shape[0], x2.shape[0], pixels, pixels), (2, 3), (0, 1)
    )
