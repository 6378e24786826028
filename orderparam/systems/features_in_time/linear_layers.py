"""Theory of linear networks with several hidden layers, of infinite width, at every step.

The fields h of one unit at all steps and points, and its gradients g at all steps, are Gaussian and
linear in the Gaussian numbers of the start. The kernels of a layer follow from those of its
neighbours, and at each step from those of earlier steps."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.systems.features_in_time.model import LinearLayersDescent

Scalar = Float[Array, ""]


class LinearLayersPath(Result):
    """Errors along training of a linear network, and the sizes of its layers after the last step.

    Fields:
        train_error: mean squared error on the training set after 0, 1, ... steps.
        test_error: mean squared error on the test inputs after 0, 1, ... steps.
        layer_power: mean over training inputs of |h^l|^2/N for the layers 1, 2, ..., after the last
            step.
        readout_power: |w|^2/N after the last step; 1 at the start.
        residual: largest change of a kernel in the last sweep over the layers.
        converged: whether all numbers are finite and the residual is below 1e-8.
    """

    train_error: Float[Array, "step"]
    test_error: Float[Array, "step"]
    layer_power: Float[Array, "layer"]
    readout_power: Scalar
    residual: Scalar
    converged: Bool[Array, ""]


class LayerKernels(NamedTuple):
    """Kernels of one layer; fields run over times and points, gradients over times.

    Fields:
        fields: E h h^T of a unit.
        gradients: E g g^T of a unit.
        forward: A, response of the fields to the Gaussian part of the gradients.
        backward: B, response of the gradients of the layer below to the Gaussian part of the fields
            of this layer.
    """

    fields: Float[Array, "field other_field"]
    gradients: Float[Array, "time other_time"]
    forward: Float[Array, "field time"]
    backward: Float[Array, "time field"]


@theory
def linear_layers_dynamics(system: LinearLayersDescent) -> LinearLayersPath:
    r"""Errors of a linear network of infinite width along gradient descent, exactly at any depth.

    With $\Delta = y - f$ and $\theta(t > s)$, a unit of layer l has
    $h^l = u^l + (A^{l-1} + C^l)\, g^l$ and $g^l = r^l + (B^l + D^l)\, h^l$, with Gaussian
    $u^l, r^l$ of covariances $H^{l-1}, G^{l+1}$ and

    $$ C^l_{(t\mu), s} = \eta\gamma\, \theta \sum_\nu H^{l-1}_{\mu\nu}(t, s) \Delta_\nu(s), \qquad
       D^l_{t, (s\nu)} = \eta\gamma\, \theta\, G^{l+1}(t, s) \Delta_\nu(s) $$

    where $H^0 = x \cdot x'/D$, $G^{L+1} = 1$, $A^0 = B^L = 0$. With $S = [1 - (B^l + D^l)(A^{l-1} +
    C^l)]^{-1}$ and $T = 1 + (A^{l-1} + C^l) S (B^l + D^l)$,

    $$ A^l = (A^{l-1} + C^l) S, \quad H^l = T H^{l-1} T^T + A^l G^{l+1} A^{lT}, \qquad
       B^{l-1} = S (B^l + D^l), \quad G^l = S G^{l+1} S^T + B^{l-1} H^{l-1} B^{(l-1)T} $$

    and $f_\mu(t) = \frac1\gamma E\, g^L(t) h^L_\mu(t)$. Times are added one by one, with L + 2
    sweeps over the layers for each.

    Accuracy: rounding; `residual` measures it. Where training is unstable, it diverges as training
    does.

    Cost: of order steps^4 * depth^2 * (train + test)^2; 0.05 s for 20 steps, 3 points and 2 layers.

    Source: Bordelon, Pehlevan (2022), for linear units and steps of finite size; the causal sweep
    is derived here.

    >>> import numpy as np
    >>> x = np.eye(3)
    >>> system = LinearLayersDescent(x, np.ones(3), x, np.ones(3), depth=2, steps=3)
    >>> found = linear_layers_dynamics(system)
    >>> round(float(found.train_error[0]), 6), bool(found.converged)
    (1.0, True)
    """
    x = jnp.concatenate([system.inputs, system.test_inputs])
    wanted = jnp.concatenate([system.targets, system.test_targets])
    count, points, times = len(system.targets), len(x), system.steps + 1
    trained = jnp.arange(points) < count
    input_kernel = jnp.kron(jnp.ones((times, times)), x @ x.T / x.shape[1])
    whole = jnp.ones((times, times))
    later = jnp.tril(whole, -1)
    step_size = system.learning_rate * system.richness

    def sweep(
        layers: list[LayerKernels], delta: Float[Array, "time point"]
    ) -> tuple[list[LayerKernels], Float[Array, "time point"]]:
        spread = jnp.kron(later, jnp.ones((1, points))) * delta.reshape(-1)
        errors = jnp.zeros((times, points, times))
        errors = errors.at[jnp.arange(times), :, jnp.arange(times)].set(delta)
        errors = errors.reshape(times * points, times)
        masked = jnp.repeat(later, points, axis=0)

        def coupled(l: int) -> tuple[Array, Array, Array, Array]:
            """A + C and B + D of a layer, H of the layer below, and G of the one above."""
            below = layers[l - 1].fields if l > 0 else input_kernel
            above = layers[l + 1].gradients if l + 1 < len(layers) else whole
            up = step_size * masked * (below @ errors)
            down = step_size * jnp.repeat(above, points, axis=1) * spread
            if l > 0:
                up = up + layers[l - 1].forward
            if l + 1 < len(layers):
                down = down + layers[l + 1].backward
            return up, down, below, above

        for l in range(len(layers)):
            up, down, below, above = coupled(l)
            closed = jnp.linalg.inv(jnp.eye(times) - down @ up)
            forward = up @ closed
            # T H T^T for T = 1 + forward @ down, without products of two large matrices
            seen = down @ below
            moved = forward @ seen
            inner = forward @ (seen @ down.T + above) @ forward.T
            fields = below + moved + moved.T + inner
            layers[l] = layers[l]._replace(fields=fields, forward=forward)
        for l in reversed(range(len(layers))):
            up, down, below, above = coupled(l)
            closed = jnp.linalg.inv(jnp.eye(times) - down @ up)
            backward = closed @ down
            gradients = closed @ above @ closed.T + backward @ below @ backward.T
            layers[l] = layers[l]._replace(gradients=gradients, backward=backward)
        up, _, below, _ = coupled(len(layers) - 1)
        mixed = layers[-1].backward @ below + layers[-1].gradients @ up.T
        diagonal = jnp.arange(times)
        output = mixed.reshape(times, times, points)[diagonal, diagonal] / system.richness
        return layers, output

    def add(state: tuple[list[LayerKernels], Array], t: Array) -> tuple[tuple, tuple]:
        layers, delta = state
        before = layers
        output = delta
        for _ in range(system.depth + 2):
            before = layers
            layers, output = sweep(list(layers), delta)
        moved = jax.tree.map(lambda one, other: jnp.max(jnp.abs(one - other)), layers, before)
        left = wanted - output[t]
        delta = delta.at[t].set(jnp.where(trained, left, 0.0))
        return (layers, delta), (left**2, jnp.max(jnp.stack(jax.tree.leaves(moved))))

    empty = LayerKernels(
        input_kernel, whole, jnp.zeros((times * points, times)), jnp.zeros((times, times * points))
    )
    start = ([empty] * system.depth, jnp.zeros((times, points)))
    (layers, _), (squares, moved) = jax.lax.scan(add, start, jnp.arange(times))
    powers = [jnp.diagonal(layer.fields).reshape(times, points)[-1, :count] for layer in layers]
    residual = jnp.max(moved)
    return LinearLayersPath(
        train_error=jnp.mean(squares[:, :count], axis=1),
        test_error=jnp.mean(squares[:, count:], axis=1),
        layer_power=jnp.stack([jnp.mean(power) for power in powers]),
        readout_power=layers[-1].gradients[-1, -1],
        residual=residual,
        converged=jnp.all(jnp.isfinite(squares)) & (residual < 1e-8),
    )
