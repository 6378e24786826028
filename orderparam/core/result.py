"""A Result: named observables whose jaxtyping annotations are the schema of a labelled data set."""

import typing
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

if typing.TYPE_CHECKING:
    import xarray as xr


@typing.dataclass_transform(kw_only_default=True, frozen_default=True)
class _ByKeyword(type(eqx.Module)):  # type: ignore[misc]  # the metaclass of eqx.Module has no public name
    """Classes whose objects are built from keywords only."""

    def __call__(cls, *unnamed: Any, **fields: Any) -> Any:
        if unnamed:
            names = ", ".join(f"{name}=..." for name in cls.__dataclass_fields__)
            raise TypeError(f"name the fields of a Result: {cls.__name__}({names})")
        return super().__call__(**fields)


class Result(eqx.Module, metaclass=_ByKeyword):
    """Base of all results. Every field is an annotated array; the annotation names its dimensions.

    A Result is built by keywords: `BayesOptimal(overlap=q, error=e)`.

        class BayesOptimal(Result):
            "Order parameters and error of the Bayes-optimal learner."
            overlap: Float[Array, "feature"]
            error: Float[Array, ""]

    `BayesOptimal.dims()` is `{"overlap": ("feature",), "error": ()}`. Iterative theories add
    `converged: Bool[Array, ""]` and `residual: Float[Array, ""]`; a sweep counts and marks the
    points that did not converge.
    """

    @classmethod
    def dims(cls) -> dict[str, tuple[str, ...]]:
        """Field name -> names of its dimensions, in the order of the annotations."""
        hints = typing.get_type_hints(cls)
        dims: dict[str, tuple[str, ...]] = {}
        for name in cls.__dataclass_fields__:
            dim_str = getattr(hints[name], "dim_str", None)
            if dim_str is None:
                raise TypeError(
                    f"{cls.__name__}.{name}: annotate it with jaxtyping, for example Float[Array, "
                    '"feature"]'
                )
            dims[name] = tuple(dim_str.split())
        return dims

    def observables(self) -> dict[str, np.ndarray]:
        """Field name -> its value as a NumPy array.

        Whole numbers in a real field become float64; masked entries of a real field become NaN.
        Raises `ValueError` for masked entries of a field that is not real.
        """
        hints = typing.get_type_hints(type(self))
        return {name: _array(getattr(self, name), name, hints[name]) for name in type(self).dims()}

    def to_dataset(
        self, leading: Sequence[str] = (), coords: Mapping[Hashable, Any] | None = None
    ) -> "xr.Dataset":
        """The labelled data set of this result.

        leading: names of extra dimensions in front of each field's own (for a batched result).
        Raises `ValueError` when a field's rank does not fit its annotation.
        """
        import xarray as xr  # slow to import, and not needed to solve a theory

        variables = {}
        for name, value in self.observables().items():
            own = type(self).dims()[name]
            dims = (*leading, *own)
            if value.ndim != len(dims):
                raise ValueError(
                    f"{type(self).__name__}.{name} has shape {value.shape}, but its dimensions are "
                    f"{dims}: let the shape follow the annotation"
                )
            variables[name] = (dims, value)
        return xr.Dataset(variables, coords=coords)

    def __repr__(self) -> str:
        rows = []
        for name, dims in type(self).dims().items():
            rows.append(f"  {name + ' ':<22}{_describe(getattr(self, name), dims)}")
        return "\n".join([type(self).__name__, *rows])


def with_errors(**estimates: tuple[Any, Any]) -> dict[str, Array]:
    """Keywords of a Result: the fields NAME and NAME_error of every NAME=(value, standard error).

    >>> sorted(with_errors(overlap=(0.5, 0.01)))
    ['overlap', 'overlap_error']
    """
    fields = {}
    for name, (value, error) in estimates.items():
        fields[name], fields[f"{name}_error"] = jnp.asarray(value), jnp.asarray(error)
    return fields


def along_time(start: Any, later: Any) -> Any:
    """A path: the numbers at the start, in front of those after 1, 2, ... steps.

    `start` and `later` are two Results, or other trees of arrays, of one structure; every array of
    `later` has one more axis, the first, which counts the steps.
    """
    return jax.tree.map(lambda one, rest: jnp.concatenate([one[None], rest]), start, later)


def _array(value: Any, name: str, annotation: Any) -> np.ndarray:
    real = "float64" in annotation.dtypes and "int64" not in annotation.dtypes
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value) and not (real and value.dtype.kind in "biuf"):
            raise ValueError(
                f"{name} holds masked entries: only a field of real numbers, Float, can be without "
                "a value"
            )
        value = (
            np.ma.filled(value.astype(np.float64), np.nan) if np.ma.is_masked(value) else value.data
        )
    array = np.asarray(value)
    return array.astype(np.float64) if real and array.dtype.kind in "biu" else array


def _describe(value: Any, dims: tuple[str, ...]) -> str:
    """A value in one line: the number, or the labelled shape with the first entries."""
    if isinstance(value, jax.core.Tracer | jax.ShapeDtypeStruct) or not hasattr(value, "shape"):
        return str(value)
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array[()]:.8g}" if np.issubdtype(array.dtype, np.floating) else str(array[()])
    names = dims if len(dims) == array.ndim else tuple("batch" for _ in array.shape)
    shape = ", ".join(f"{name} {size}" for name, size in zip(names, array.shape))
    flat = array.ravel()[:4]
    shown = " ".join(
        f"{x:z.4g}" if np.issubdtype(array.dtype, np.floating) else str(x) for x in flat
    )
    return f"({shape})  {shown}{' …' if array.size > 4 else ''}"
