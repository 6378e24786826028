"""Figure of a ridge that depends on the input: its uniform mean predicts another curve."""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np

from orderparam.core.study import Curve, study
from orderparam.kernels import Spectrum
from orderparam.plotting import Panel
from orderparam.systems.kernel_regression.heteroscedastic.experiment import heteroscedastic_design
from orderparam.systems.kernel_regression.heteroscedastic.model import HeteroscedasticRegression
from orderparam.systems.kernel_regression.heteroscedastic.theory import heteroscedastic
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression
from orderparam.systems.kernel_regression.spectrum.theory.self_consistent import self_consistent

_LOCAL = "ridge $T(x)$"
_PER_COPY = "examples per copy $n/m$", lambda data: data["n_train"] / data.attrs["facets"]["copies"]


@study(
    "patchy-ridge",
    title="A ridge that depends on the input is no uniform ridge: where it is small, the modes are learned",
    source="Howard et al. 2024; solved for this package",
    panels=[
        Panel(_PER_COPY, "test_error", by="copies", log="xy"),
        Panel(
            _PER_COPY,
            "test_error",
            by="copies",
            log="x",
            ratio_to=_LOCAL,
            ylabel="measured / theory",
            where={"label": (_LOCAL, "measured")},
        ),
    ],
    caption="{rank} eigenvalues $1/(mk)$ of $m$ modes each share a target of power 1; $T(x)$ is {low} or {high} on either half "
    "of the inputs. All $m$ are one curve in theory; what finite systems add falls with $m$. Gaussian features.",
    seconds=(20, 600),
    observables=("test_error", "train_error"),
    explained=(
        "Finite size: where the error is steep the measured one is up to 25 % above the theory with one copy of each mode, 8 % "
        "with four."
    ),
    full={"copies": (1, 2, 4, 8), "seeds": 4000},
)
def patchy_ridge(
    rank: int = 20,
    low: float = 0.051,
    high: float = 1.951,
    copies: tuple[int, ...] = (1, 4),
    n_train: tuple[int, ...] = (10, 20, 40, 80, 160),
    seeds: int = 1000,
) -> Iterator[Curve]:
    """n_train: examples per copy. seeds: of the smallest system; larger ones fluctuate less and get as many fewer."""
    halves, extra = jnp.array([0.5, 0.5]), jnp.array([0.0, high - low])
    line = sorted({*np.geomspace(min(n_train), max(n_train), 60), *map(float, n_train)})

    def spectrum(m: int) -> Spectrum:
        return Spectrum(1 / (m * np.arange(1.0, rank + 1)), np.full(rank, 1 / rank), np.full(rank, float(m)))

    for m in copies:
        patchy = HeteroscedasticRegression(
            spectrum(m), 10.0, low, weights=halves, extra_temperature=extra, extra_noise=jnp.zeros(2)
        )
        grid, measured = {"n_train": [m * n for n in line]}, {"n_train": [m * n for n in n_train]}
        facets = {"copies": m}
        yield Curve(_LOCAL, heteroscedastic, patchy, grid, facets=facets)
        yield Curve("measured", heteroscedastic_design, patchy, measured, max(4, seeds // m), batch_seeds=True, facets=facets)
    uniform = KernelRegression(spectrum(copies[0]), 10.0, (low + high) / 2)
    mean = {"n_train": [copies[0] * n for n in line]}
    facets = {"copies": copies[0]}
    yield Curve("its mean as a uniform ridge", self_consistent, uniform, mean, facets=facets, baseline=True)
