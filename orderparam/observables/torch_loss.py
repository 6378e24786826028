"""A loss of a PyTorch module as a function in JAX, for the samplers of this package."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

BATCH = 64  # sets of parameters that are evaluated at once


def torch_loss(
    module: Any, loss: Callable[[Callable[..., Any]], Any]
) -> tuple[Callable[[Float[Array, "parameter"]], Float[Array, ""]], Float[np.ndarray, "parameter"]]:
    """The loss of a PyTorch module as a function of its parameters in JAX, with its gradient, for
    `learning_coefficient`.

    Args:
        module: A `torch.nn.Module`, best in double precision and in evaluation mode.
        loss: A function of the network that returns one number; the network that it is given has
            other parameters than the module and is called in the same way, as in
            `lambda net: torch.nn.functional.cross_entropy(net(x), y)`.

    Returns:
        The function of all parameters in one vector, in the order of `module.named_parameters()`,
        and the vector of the present parameters.

    Raises:
        RuntimeError: from PyTorch, for what `torch.func.vmap` cannot evaluate.

    Accuracy: that of the module's precision. Many sets of parameters are evaluated in one call.

    >>> import torch
    >>> net = torch.nn.Linear(2, 1, bias=False).double()
    >>> measured, start = torch_loss(net, lambda net: net(torch.ones(1, 2).double()).sum() ** 2)
    >>> bool(jnp.allclose(jax.grad(measured)(start), 2 * start.sum()))
    True
    """
    import torch
    from torch.func import functional_call, grad_and_value, vmap

    named = {name: value.detach() for name, value in module.named_parameters()}
    buffers, kind = dict(module.named_buffers()), next(iter(named.values()))
    sizes = [value.numel() for value in named.values()]

    def of_vector(vector: Any) -> Any:
        parts = vector.split(sizes)
        moved = {
            name: part.reshape(value.shape) for part, (name, value) in zip(parts, named.items())
        }
        return loss(lambda *given: functional_call(module, (moved, buffers), given))

    both = vmap(grad_and_value(of_vector), chunk_size=BATCH)

    def on_host(vectors: Any) -> tuple[np.ndarray, np.ndarray]:
        flat = torch.as_tensor(np.array(vectors)).reshape(-1, sum(sizes)).to(kind)
        slopes, values = (one.to(torch.float64).cpu().numpy() for one in both(flat))
        return values.reshape(np.shape(vectors)[:-1]), slopes.reshape(np.shape(vectors))

    def called(vector: Array) -> tuple[Array, Array]:
        shapes = (
            jax.ShapeDtypeStruct((), jnp.float64),
            jax.ShapeDtypeStruct((sum(sizes),), jnp.float64),
        )
        return jax.pure_callback(on_host, shapes, vector, vmap_method="expand_dims")

    @jax.custom_vjp
    def measured(vector: Array) -> Array:
        return called(vector)[0]

    measured.defvjp(called, lambda slope, weight: (weight * slope,))
    start = torch.cat([value.reshape(-1) for value in named.values()])
    return measured, start.to(torch.float64).cpu().numpy()
