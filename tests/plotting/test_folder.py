"""Finished numbers on disk: what xarray and Zarr read is what was written."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
import zarr

from orderparam.core.errors import StoreError
from orderparam.plotting.folder import write_folder


def curves():
    return xr.Dataset(
        {
            "error": (("n_train", "seed"), np.array([[0.5, np.nan, 0.3], [0.2, -0.0, 1e-300]])),
            "name": (("n_train",), np.array(["few", "viele: äöü"])),
            "finite": (("seed",), np.array([True, False, True])),
            "total": ((), np.int64(-7)),
        },
        {
            "n_train": [10, 20],
            "seed": np.arange(3),
            "share": ("n_train", [0.25, 0.5]),
            "group": ("seed", np.array(["a", "b", "a"], object)),
        },
        {"points": np.int64(3), "sizes": np.array([1.5, 2.0]), "title": "a title"},
    )


def test_xarray_reads_the_numbers_that_were_written(tmp_path):
    data = curves()
    data["error"].attrs["unit"] = "variance"
    given = {"first": data, "second": data.isel(seed=[])}
    write_folder(tmp_path / "out", given, plt.figure, {"a": 1}, attributes=True)
    folder = tmp_path / "out" / "forecast.zarr"
    for name, one in given.items():
        found = xr.open_zarr(folder, group=name, consolidated=False)
        xr.testing.assert_equal(found, one)
        assert set(found.coords) == set(one.coords)
        assert found.attrs == {"points": 3, "sizes": [1.5, 2.0], "title": "a title"}
        assert found["error"].attrs == {"unit": "variance"}
    assert zarr.open_group(folder, mode="r")["first/error"].shape == (2, 3)
    with pytest.raises(StoreError, match="is not empty"):
        write_folder(tmp_path / "out", given, plt.figure, {})


def test_attributes_are_left_out_unless_asked_for(tmp_path):
    write_folder(tmp_path / "out", {"a": curves()}, plt.figure, {}, "numbers.zarr")
    found = xr.open_zarr(tmp_path / "out" / "numbers.zarr", group="a", consolidated=False)
    assert not found.attrs
    xr.testing.assert_equal(found, curves())


def test_the_whole_command_needs_neither_jax_nor_zarr(tmp_path):
    """Each takes a tenth of the processor time of a forecast to import."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 3))
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", header="x,z,y", comments="")
    code = """if True:
    import sys
    from orderparam.cli import main
    sys.argv = ["orderparam", "predict", "a.csv", "--target", "y", "--arch", "fc:1:relu"]
    try:
        main()
    finally:
        assert not {"jax", "equinox", "zarr"} & set(sys.modules)
    """
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "results" / "predict-a" / "figure.pdf").exists()
