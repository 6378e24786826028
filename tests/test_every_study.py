"""Every study is built at both sizes, and drawn from numbers that were never computed.

A tiny run of any study costs seconds because nothing is run: in place of `sweep` stand data sets with the dimensions,
coordinates and shapes that the study's theories and experiments declare, filled with random numbers. Some points are failed
(NaN), some did not converge: figures must take both. Agreement and summary are computed from them as from real ones.
"""

import functools
import io
import typing

import equinox as eqx
import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from orderparam.core.program import DONE, FAILED, UNCONVERGED, describe
from orderparam.core.result import Result
from orderparam.core.study import compare, studies
from orderparam.core.study.table import tables
from orderparam.core.sweep import checked
from orderparam.core.system import replace

STUDIES = studies()
SIZE = 3  # of dimensions that nothing else tells


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_drawn(name, monkeypatch):
    monkeypatch.setattr("orderparam.core.study.run.sweep", Fabricated())
    comparison = _built(lambda: compare(STUDIES[name]))
    assert list(comparison.datasets)
    for key, agreement in comparison.agreement.items():
        assert all(table.row_count for table in tables(key, agreement))
    for dark in (False, True):
        figure = comparison.figure(dark)
        assert figure.axes
        figure.savefig(io.BytesIO(), dpi=40)
        plt.close(figure)


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_built_at_the_size_of_its_source(name):
    study = STUDIES[name]
    curves = _built(lambda: study.build(**study.parameters(full=True)))
    for curve in curves:
        checked(curve.system, curve.over, curve.seeds)
        assert set(curve.paired) <= set(curve.over)
    assert len({curve.key for curve in curves}) == len(curves)


def _built(make):
    """What `make` returns; the test is skipped where a data set is not on this machine."""
    try:
        return make()
    except OSError as error:
        pytest.skip(f"a data set is missing: {error}")


class Fabricated:
    """Stands in for `sweep`: the data set that it would return, of random numbers."""

    def __init__(self):
        self.calls = 0
        self.sizes = {}  # of the dimensions met so far in this study

    def __call__(self, fn, system, over=None, *, seeds=None, **_):
        grid, numbers = checked(system, over, seeds)
        self.calls += 1
        rng = np.random.default_rng(self.calls)
        coords = grid.coords() if numbers is None else {**grid.coords(), "seed": np.asarray(numbers)}
        shape = tuple(len(values) for values in coords.values())
        status = np.full(shape, DONE, np.int8)
        if grid.size > 1:
            status[-1, ...] = UNCONVERGED
        if grid.size > 2:
            status[0, ...] = FAILED
        variables = {"status": (tuple(coords), status)}
        for observable, (dims, own, dtype) in self._schema(fn, system, grid, numbers is not None).items():
            values = self._values(rng, shape, own, dtype)
            if np.issubdtype(dtype, np.floating):
                values[status == FAILED] = np.nan
            variables[observable] = ((*coords, *dims), values)
        attrs = {"function": describe(fn), "system": type(system).__name__, "points": status.size, "failed": 0, "unconverged": 0}
        return xr.Dataset(variables, coords, attrs)

    def _values(self, rng, shape, own, dtype):
        """Positive and increasing along an observable's own last dimension, so that it may be an axis."""
        if np.issubdtype(dtype, np.floating):
            common = np.sort(rng.uniform(0.2, 1.0, own), axis=-1) if own else rng.uniform(0.2, 1.0)
            return common * rng.uniform(0.9, 1.1, shape + (1,) * len(own))
        return rng.integers(0, 2, shape + own).astype(dtype)

    def _schema(self, fn, system, grid, is_experiment):
        """Observable -> its dimensions, shape and kind of number: as annotated where all sizes are known, else by tracing."""
        first = replace(system, grid.points(tuple(slice(0, 1) for _ in grid.shape))[0])
        declared = _result_of(fn)
        unknown = {dim for dims in declared.dims().values() for dim in dims if dim not in self.sizes}
        if unknown:
            self.sizes.update(self._traced_sizes(fn, first, is_experiment) or {dim: _size(first, dim) for dim in unknown})
        hints = typing.get_type_hints(declared)
        return {
            name: (dims, tuple(self.sizes[dim] for dim in dims), _dtype(hints[name])) for name, dims in declared.dims().items()
        }

    def _traced_sizes(self, fn, system, is_experiment):
        """The sizes of all dimensions of what `fn` returns, from abstract values; None where it cannot be traced."""
        keys = (jax.random.key(0),) if is_experiment else ()
        try:
            result = eqx.filter_eval_shape(functools.partial(fn, system), *keys)
        except Exception:
            return None
        return {dim: size for name, dims in type(result).dims().items() for dim, size in zip(dims, getattr(result, name).shape)}


def _dtype(hint):
    return np.dtype(float if "float64" in hint.dtypes else bool if "bool" in hint.dtypes else int)


def _result_of(fn):
    """The Result that a function declares, also through `functools.partial` and a function given by keyword."""
    inner = fn
    while isinstance(inner, functools.partial):
        chosen = [value for value in inner.keywords.values() if callable(value) and hasattr(value, "__annotations__")]
        inner = chosen[0] if chosen else inner.func
    result = typing.get_type_hints(getattr(inner, "__wrapped__", inner))["return"]
    assert issubclass(result, Result), f"{describe(fn)} must be annotated with the Result that it returns"
    return result


def _size(system, dim):
    """What a system calls the size of a dimension."""
    value = getattr(system, dim, SIZE)
    return int(value) if np.ndim(value) == 0 and np.isfinite(value) and 0 < value < 100 else SIZE
