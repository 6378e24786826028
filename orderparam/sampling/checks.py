"""The checks of the arguments of sampling: each message names the argument, its value and what is
allowed.

Traced values (a run inside `jax.vmap` or `jax.jit`) cannot be checked; shapes are always checked.
"""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from orderparam.core.fields import check_integer
from orderparam.sampling.transitions import LogDensity


def checked_positions(initial: Any, chains: int | None, key: PRNGKeyArray) -> tuple[PyTree, int]:
    """Initial positions in double precision with a leading chain axis, and the number of chains."""
    if chains is not None:
        check_integer("chains", chains, 1)
        if not callable(initial):
            raise ValueError(
                f"chains = {chains}: must be left out unless initial is a function key -> position"
            )
        initial = jax.vmap(initial)(jax.random.split(key, chains))
    leaves = jax.tree_util.tree_leaves_with_path(initial)
    if not leaves:
        raise ValueError(f"initial = {initial!r}: must hold arrays with a leading chain axis")
    for path, leaf in leaves:
        name = f"initial{jax.tree_util.keystr(path)}"
        if not isinstance(leaf, jax.Array | np.ndarray) or not jnp.issubdtype(
            leaf.dtype, jnp.floating
        ):
            hint = " (a function of the key needs chains=)" if callable(leaf) else ""
            raise ValueError(f"{name} = {leaf!r}: must be an array of real numbers{hint}")
        if leaf.ndim == 0:
            raise ValueError(f"{name} = {leaf}: must have a leading chain axis")
    sizes = {jax.tree_util.keystr(path): leaf.shape[0] for path, leaf in leaves}
    if len(set(sizes.values())) > 1 or 0 in sizes.values():
        raise ValueError(
            f"initial has chain axes of sizes {sizes}: must all have the same positive size"
        )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, float), initial), leaves[0][1].shape[0]


def checked_step_sizes(step_size: Any, chains: int) -> Float[Array, "chain"]:
    """One positive step size per chain."""
    if jnp.shape(step_size) not in ((), (chains,)):
        raise ValueError(
            f"step_size has shape {jnp.shape(step_size)}: must be one number, or one for each of "
            f"{chains} chains"
        )
    if not _all_positive(step_size):
        raise ValueError(f"step_size = {step_size}: must be positive and finite")
    return jnp.broadcast_to(jnp.asarray(step_size, float), (chains,))


def checked_scale(scale: PyTree, position: PyTree) -> PyTree:
    """The widths of the parameters as arrays that broadcast against one position."""
    leaves = jax.tree_util.tree_leaves_with_path(position)
    given = jax.tree_util.tree_leaves_with_path(scale)
    if [path for path, _ in given] != [path for path, _ in leaves]:
        names = [jax.tree_util.keystr(path) for path, _ in leaves]
        raise ValueError(
            f"scale = {scale!r}: must be a pytree like one position, with entries {names}"
        )
    for (path, widths), (_, leaf) in zip(given, leaves):
        name, shape = f"scale{jax.tree_util.keystr(path)}", jnp.shape(widths)
        if len(shape) > leaf.ndim or any(
            own not in (1, size) for own, size in zip(shape[::-1], leaf.shape[::-1])
        ):
            raise ValueError(
                f"{name} has shape {shape}: must broadcast against that of one position, "
                f"{leaf.shape}"
            )
        if not _all_positive(widths):
            raise ValueError(f"{name} = {widths}: must be positive and finite")
    return jax.tree.map(lambda widths: jnp.asarray(widths, float), scale)


def _all_positive(values: Any) -> bool:
    if isinstance(values, jax.core.Tracer):
        return True
    return bool(np.all((np.asarray(values) > 0) & np.isfinite(values)))


def check_functions(
    log_density: LogDensity,
    recorded: Mapping[str, Callable[[PyTree], PyTree]],
    position: PyTree,
) -> None:
    """Checks that the log density is one real number, and that what the functions with these names
    return are real, integer or boolean arrays."""
    density = eqx.filter_eval_shape(log_density, position)
    if getattr(density, "shape", None) != () or not jnp.issubdtype(density.dtype, jnp.floating):
        raise ValueError(f"log_density returns {density}: must be one real number")
    for name, function in recorded.items():
        shapes = eqx.filter_eval_shape(function, position)
        for path, leaf in jax.tree_util.tree_leaves_with_path(shapes):
            kind = getattr(leaf, "dtype", None)
            if kind is None or not jnp.isdtype(kind, ("bool", "integral", "real floating")):
                raise ValueError(
                    f"{name}(...){jax.tree_util.keystr(path)} = {leaf}: must be an array of real "
                    "numbers, integers or booleans"
                )


def check_finite(log_densities: Float[Array, "chain"], gradients: PyTree) -> None:
    """Checks that log density and gradient are finite where the chains start."""
    finite = jnp.isfinite(log_densities)
    for gradient in jax.tree.leaves(gradients):
        finite &= jnp.all(jnp.isfinite(gradient), axis=tuple(range(1, gradient.ndim)))
    if not isinstance(finite, jax.core.Tracer) and not bool(jnp.all(finite)):
        bad = np.flatnonzero(~np.asarray(finite))
        raise ValueError(
            f"initial: log_density = {np.asarray(log_densities)[bad]} in chains {bad.tolist()}: it "
            "and its gradient must be finite where a chain starts"
        )


def check_stability(step_sizes: Float[Array, "chain"], curvatures: Float[Array, "chain"]) -> None:
    """Checks that Langevin steps satisfy dt < 2/A; above it the stiffest mode grows without
    bound."""
    unstable = (curvatures > 0) & (step_sizes * curvatures >= 2)
    if not isinstance(unstable, jax.core.Tracer) and bool(jnp.any(unstable)):
        worst = int(jnp.argmax(step_sizes * curvatures))
        raise ValueError(
            f"step_size = {float(step_sizes[worst]):.4g}: must be < 2/(largest curvature) = "
            f"{2 / float(curvatures[worst]):.4g} for a stable Langevin run (chain {worst}; a "
            "twentieth of that keeps variances within about 5 %)"
        )
