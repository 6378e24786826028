"""Every study is built at both sizes, and drawn from numbers that were never computed.

A tiny run of any study costs seconds because nothing is run: in place of `sweep` stand data sets
with the dimensions, coordinates and shapes that the study's theories and experiments declare,
filled with random numbers. Some points are failed (NaN), some did not converge: figures must take
both. Agreement and summary are computed from them as from real ones.
"""

import functools
import sys
import typing
from pathlib import Path

import equinox as eqx
import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from unchanged import Reached

from orderparam.comparison import compare, studies
from orderparam.comparison.table import tables
from orderparam.core.result import Result
from orderparam.core.system import replace
from orderparam.running.program import describe
from orderparam.running.status import DONE, FAILED, UNCONVERGED
from orderparam.running.sweep import checked

STUDIES = studies()
SIZE = 3  # of dimensions that nothing else tells


def _drawn(name):
    """What computes, compares and draws a study, and the text of its file, which says how."""
    study = STUDIES[name]
    definitions = [_place(study.build), *([_place(study.draw)] if study.draw else [])]
    return Reached(definitions, _place(study.build)[0].read_text(encoding="utf-8"), left_out=())


def _place(function):
    return Path(sys.modules[function.__module__].__file__), function.__name__


@pytest.mark.reaches(by=_drawn)
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_drawn(name, monkeypatch):
    monkeypatch.setattr("orderparam.comparison.run.sweep", Fabricated())
    comparison = _built(lambda: compare(STUDIES[name]))
    assert list(comparison.datasets)
    for key, agreement in comparison.agreement.items():
        assert all(table.row_count for table in tables(key, agreement, comparison.datasets[key]))
    figure = comparison.figure()
    assert figure.axes
    if STUDIES[name].draw is not None:  # what is drawn from panels has been laid out
        figure.draw_without_rendering()
    plt.close(figure)


def _larger(name):
    study = STUDIES[name]
    return Reached([_place(study.build)], f"{study.gallery} {study.full}")


@pytest.mark.reaches(by=_larger)
@pytest.mark.parametrize("size", ["gallery", "full"])
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_built_at_its_larger_sizes(name, size):
    study = STUDIES[name]
    curves = _built(lambda: study.build(**study.parameters(size)))
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
        self.sizes = {}  # (function, kind of system) -> dimension -> size
        self.met = {}  # dimension -> size, of anything met in this study

    def __call__(self, fn, system, over=None, *, seeds=None, **_):
        grid, numbers = checked(system, over, seeds)
        self.calls += 1
        rng = np.random.default_rng(self.calls)
        coords = (
            grid.coords() if numbers is None else {**grid.coords(), "seed": np.asarray(numbers)}
        )
        shape = tuple(len(values) for values in coords.values())
        status = np.full(shape, DONE, np.int8)
        if grid.size > 1:
            status[-1, ...] = UNCONVERGED
        if grid.size > 2:
            status[0, ...] = FAILED
        variables = {"status": (tuple(coords), status)}
        declared = _result_of(fn)
        hints = typing.get_type_hints(declared)
        first = replace(system, grid.points(tuple(slice(0, 1) for _ in grid.shape))[0])
        sizes = self._sizes(fn, first, declared, numbers is not None)
        for name, dims in declared.dims().items():
            if name not in coords:
                values = np.asarray(
                    _values(rng, shape, tuple(sizes[dim] for dim in dims), _dtype(hints[name]))
                )
                if values.dtype.kind == "f":
                    values[status == FAILED] = np.nan
                variables[name] = ((*coords, *dims), values)
        attrs = {
            "function": describe(fn),
            "system": type(system).__name__,
            "points": status.size,
            "failed": 0,
            "unconverged": 0,
        }
        return xr.Dataset(variables, coords, attrs)

    def _sizes(self, fn, system, declared, is_experiment):
        """Of all dimensions of a result: as the system's arrays say; else by tracing (experiments,
        which take long, only where a dimension was not met before); else as met before."""
        dims = {dim for names in declared.dims().values() for dim in names}
        sizes = {dim: size for dim in dims if (size := _size(system, dim)) is not None}
        if is_experiment:
            sizes = {dim: self.met[dim] for dim in dims if dim in self.met} | sizes
        if sizes.keys() < dims:
            traced = self.sizes.setdefault((describe(fn).partition("(")[0], type(system)), {})
            if not traced:
                traced.update(_traced_sizes(fn, system, is_experiment))
            sizes = {dim: self.met.get(dim, SIZE) for dim in dims} | sizes | traced
        self.met |= sizes
        return sizes


def _values(rng, shape, own, dtype):
    """Positive and increasing along an observable's own last dimension, so that it may be an
    axis."""
    if dtype.kind == "f":
        common = np.sort(rng.uniform(0.2, 1.0, own), axis=-1) if own else rng.uniform(0.2, 1.0)
        return np.asarray(common * rng.uniform(0.9, 1.1, shape + (1,) * len(own)))
    return rng.integers(0, 2, shape + own).astype(dtype)


def _dtype(hint):
    return np.dtype(float if "float64" in hint.dtypes else bool if "bool" in hint.dtypes else int)


def _size(system, dim):
    """The size of a dimension by the annotated arrays of a system, None where it has none with that
    dimension."""
    for name, hint in typing.get_type_hints(type(system)).items():
        value = getattr(system, name, None)
        dims = getattr(hint, "dim_str", "").split()
        if dim in dims and np.ndim(value) == len(dims):
            return np.shape(value)[dims.index(dim)]
    return None


def _traced_sizes(fn, system, is_experiment):
    """The sizes of all dimensions of what `fn` returns, from abstract values; none where it cannot
    be traced.

    The decorator of an experiment makes arrays of the numbers that it reads sizes from, which
    tracing would hide from it.
    """
    bare = _undecorated(fn)
    keys = (jax.random.key(0),) if is_experiment else ()
    try:
        result = eqx.filter_eval_shape(lambda *given: bare(system, *given), *keys)
    except Exception:
        return {}
    return {
        dim: size
        for name, dims in type(result).dims().items()
        for dim, size in zip(dims, getattr(result, name).shape)
    }


def _undecorated(fn):
    if isinstance(fn, functools.partial):
        return functools.partial(_undecorated(fn.func), *fn.args, **fn.keywords)
    return getattr(fn, "__wrapped__", fn)


def _result_of(fn):
    """The Result that a function declares, also through `functools.partial`."""
    inner = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    result = typing.get_type_hints(getattr(inner, "__wrapped__", inner))["return"]
    assert issubclass(result, Result), (
        f"{describe(fn)} must be annotated with the Result that it returns"
    )
    return result
