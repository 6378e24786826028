"""Studies of the kernels that a network of finite width learns: its local order parameters, and the
similarity of hidden kernel and labels. Matrices are drawn as images."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from orderparam.comparison import Comparison, Curve, study
from orderparam.plotting import Freehand
from orderparam.systems.proportional.experiment import (
    sampled_network,
    sampled_similarity,
)
from orderparam.systems.proportional.model import (
    BayesianNetwork,
    Convolutional,
    FullyConnected,
    as_images,
    image_data,
    patch_teacher,
)
from orderparam.systems.proportional.similarity import similarity
from orderparam.systems.proportional.studies import CHAINS
from orderparam.systems.proportional.theory import finite_width

# The list of studies is read from this file alone, which is why it does not import the words.
AIUDI = "Aiudi, Pacelli, Baglioni, Vezzani, Burioni, Rotondo 2025"

# Matrices of the studies, drawn as images.


def _matrix(data: xr.Dataset, name: str) -> np.ndarray:
    """Matrix of this name, averaged over runs, from a curve that has a single point."""
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


_CASES = ("shared filter", "one patch", "digits, parity")


@study(
    "local-feature-importance",
    title=(
        "The local order parameters of 20 channels show which pairs of patches a filter of a "
        "known teacher uses; the used ones lie up to 16 % above the theory"
    ),
    source=AIUDI,
    panels=[
        Freehand(partial(patch_matrix, label=label, problem=case), f"{case}: {label}")
        for case in _CASES
        for label in ("theory", "sampled")
    ],
    caption="Order parameters $Q_{{ij}}$ of pairs of patches $i, j$ of one convolutional layer of "
    "{channels} "
    "erf channels, $P$ = {n_train} examples, "
    "$T$ = {temperature}; infinite width is the unit matrix. Shared filter: the "
    "target applies one filter to all four Gaussian patches; one patch: to patch 0 alone; digits, "
    "parity: even against odd digits, in four patches of 4 x 4 pixels. "
    "Every row has its own scale of colours. Means are over all runs, also over those that did not "
    f"converge. {CHAINS}",
    columns=2,
    seconds=(90, 1200),
    observables=("order_parameters",),
    full={"n_train": 200, "n_test": 500, "samples": 500},
    explained=(
        "With a shared filter all elements are 5 to 16 % larger than the theory, with one patch "
        "the learned element is 12 % larger; of the digits the large elements (above 0.9) lie "
        "within 2.5 %. Standard errors are 0.2 % of the theory in the median. One of the 48 runs "
        "did not converge; it is in the means of the figure and in no mean of the table. The "
        "number of channels is the reason. Control on the same data, 16 runs: with 40 channels the "
        "diagonal elements of the shared filter are 2.2(1) % larger than the theory on average, "
        "with 20 5.7(1) %, and the learned element of one patch 5.2(1) %, with 20 11.6(1) %. A "
        "part of this is that the theory takes the most probable order parameters: averaged over "
        "their distribution (Wishart weights of 20 channels times the evidence, 12000 draws) those "
        "of the shared filter are larger by 2 % on the diagonal and by 3 to 5 % off it. Another "
        "part is that it takes hidden units as Gaussian, and a patch has ten pixels: with 40 "
        "pixels (shared filter, 50 examples, 20 channels, 16 independent chains) diagonal elements "
        "are 1 to 3 % and the others on average 5.4(5) % above the theory; with five pixels (25 "
        "examples, 10 channels) they are 12.1(2) and 33(1) % above it on average."
    ),
)
def local_feature_importance(
    n_train: int = 60,
    n_test: int = 50,
    channels: int = 20,
    temperature: float = 0.1,
    samples: int = 200,
    seeds: int = 4,
) -> Iterator[Curve]:
    digits, shape = image_data("digits", n_train, n_test)
    problems = [
        (patch_teacher("shared", n_train, n_test), 10),
        (patch_teacher("one", n_train, n_test), 10),
        (as_images(digits, shape), 4),
    ]
    for case, (fields, mask) in zip(_CASES, problems):
        system, over = (
            Convolutional(**fields, channels=channels, temperature=temperature, mask=mask),
            {"channels": [channels]},
        )
        yield Curve("theory", finite_width, system, over, facets={"problem": case})
        yield Curve(
            "sampled",
            partial(sampled_network, samples=samples),
            system,
            over,
            seeds=seeds,
            facets={"problem": case},
        )


@study(
    "finite-width-similarity",
    title="The hidden kernel turns towards the labels as the first order in 1/N says, in a dense "
    "and a convolutional network",
    source=f"fourth moments of the units: derived here; Gaussian units: {AIUDI}",
    panels=[
        Freehand(
            partial(similarity_matrix, label=label, architecture=architecture),
            title.format(architecture),
        )
        for architecture in ("fully connected", "convolutional")
        for label, title in (
            ("", "{}:\nbefore learning"),
            ("first order in 1/N", "change,\nfirst order in $1/N$"),
            ("Gaussian hidden units", "change,\nGaussian units"),
            ("sampled", "change,\nsampled"),
        )
    ],
    caption=r"Kernel of the hidden layer $K(x_\mu, x_\nu)$, {data}, $P$ = {n_train}, $N$ = {width} "
    r"units or channels (patches of side {mask}), $T$ = {temperature}, erf; examples ordered by "
    r"class (lines); $A = P\, y^T K y / (|y|^2 \mathrm{{tr}} K)$. " + CHAINS,
    columns=4,
    seconds=(120, 2400),
    observables=("prior_alignment", "posterior_alignment"),
    full={"n_train": 200, "width": 100, "samples": 300},
)
def finite_width_similarity(
    data: str = "digits",
    n_train: int = 40,
    width: int = 120,
    temperature: float = 0.1,
    mask: int = 4,
    samples: int = 200,
    seeds: int = 4,
) -> Iterator[Curve]:
    fields, shape = image_data(data, n_train, 10)
    networks: dict[str, tuple[BayesianNetwork, str]] = {
        "fully connected": (
            FullyConnected(**fields, width=width, temperature=temperature),
            "width",
        ),
        "convolutional": (
            Convolutional(
                **as_images(fields, shape), channels=width, temperature=temperature, mask=mask
            ),
            "channels",
        ),
    }
    for name, (system, axis) in networks.items():
        over, facets = {axis: [width]}, {"architecture": name}
        sampler = partial(sampled_similarity, samples=samples)
        yield Curve("first order in 1/N", similarity, system, over, facets=facets)
        yield Curve(
            "Gaussian hidden units",
            partial(similarity, units="gaussian"),
            system,
            over,
            facets=facets,
            baseline=True,
        )
        yield Curve("sampled", sampler, system, over, seeds=seeds, facets=facets)
