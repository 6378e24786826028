"""Matrices of the studies of finite width, drawn as images."""

from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison
from orderparam.systems.proportional.model import (
    image_data,
)

# Matrices of the studies, drawn as images.


def _matrix(data: xr.Dataset, name: str) -> np.ndarray:
    """A matrix of the single point of a curve, averaged over runs."""
    values = data[name]
    return np.asarray(values.mean("seed") if "seed" in values.dims else values).squeeze()


def _image(axes: Any, matrix: np.ndarray, limit: float) -> None:
    """Draw a matrix from blue to red, with white at zero, and a colour bar."""
    image = axes.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
    axes.spines[:].set_visible(False)
    axes.figure.colorbar(image, ax=axes, shrink=0.55)


def patch_matrix(axes: Any, comparison: Comparison, label: str, problem: str) -> None:
    """Draw Q_ij of a convolutional network, with numbers in the cells if they are large enough."""
    curves = comparison.curves(problem=problem).values()
    matrices = {data.attrs["label"]: _matrix(data, "order_parameters") for data in curves}
    matrix, limit = matrices[label], max(float(np.abs(one).max()) for one in matrices.values())
    _image(axes, matrix, limit)
    if matrix.shape[0] <= 6:
        for (i, j), entry in np.ndenumerate(matrix):
            ink = "white" if abs(entry) > 0.7 * limit else "black"
            # no -0.00
            axes.text(
                j,
                i,
                f"{round(float(entry), 2) + 0.0:.2f}",
                ha="center",
                va="center",
                fontsize=7,
                color=ink,
            )
    axes.set_xlabel("patch $j$")
    axes.set_ylabel("patch $i$")
    axes.set_xticks(range(matrix.shape[0]))
    axes.set_yticks(range(matrix.shape[0]))
    axes.tick_params(length=0)


def similarity_matrix(axes: Any, comparison: Comparison, label: str, architecture: str) -> None:
    """Draw the change of a hidden kernel by learning, from the curve with this label, or the kernel
    before learning if the label is empty. Examples are ordered by class."""
    curves = {
        data.attrs["label"]: data for data in comparison.curves(architecture=architecture).values()
    }
    data = curves[label or "first order in 1/N"]
    before = _matrix(data, "prior")
    matrix = _matrix(data, "posterior") - before if label else before
    first = curves["first order in 1/N"]
    limit = np.abs(_matrix(first, "posterior") - _matrix(first, "prior") if label else before).max()
    p = comparison.parameters
    y = np.asarray(image_data(p["data"], p["n_train"], 1)[0]["targets"])
    order = np.argsort(-y, kind="stable")
    _image(axes, matrix[np.ix_(order, order)], float(limit))
    aligned = float(data["posterior_alignment" if label else "prior_alignment"].mean())
    axes.set_xlabel(rf"$\nu$  ($A$ = {aligned:.2f})")
    axes.set_ylabel(r"example $\mu$")
    for line in (axes.axhline, axes.axvline):
        line((y > 0).sum() - 0.5, color="black", linewidth=0.6)
