"""Figure of a ridge that depends on the input: its uniform mean predicts another curve."""

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


@study(
    "patchy-ridge",
    title="A ridge that depends on the input is no uniform ridge: where it is small, the modes are learned",
    source="Howard et al. 2024; solved for this package",
    panels=[Panel("n_train", "test_error", log="xy")],
    caption="{rank} modes of eigenvalue $1/k$ that share a target of power 1; $T(x)$ is {low} or {high} on either half of the "
    "inputs. Measured on Gaussian features.",
    seconds=(15, 60),
    observables=("test_error", "train_error"),
    full={"seeds": 2000},
)
def patchy_ridge(
    rank: int = 20,
    low: float = 0.051,
    high: float = 1.951,
    n_train: tuple[int, ...] = (10, 20, 40, 80, 160),
    seeds: int = 200,
) -> list[Curve]:
    spectrum = Spectrum(1 / np.arange(1.0, rank + 1), np.full(rank, 1 / rank))
    halves, extra = jnp.array([0.5, 0.5]), jnp.array([0.0, high - low])
    patchy = HeteroscedasticRegression(spectrum, 10.0, low, weights=halves, extra_temperature=extra, extra_noise=jnp.zeros(2))
    uniform = KernelRegression(spectrum, 10.0, (low + high) / 2)
    grid = {"n_train": np.geomspace(min(n_train), max(n_train), 60)}
    return [
        Curve("ridge $T(x)$", heteroscedastic, patchy, grid),
        Curve("its mean as a uniform ridge", self_consistent, uniform, grid, baseline=True),
        Curve("measured", heteroscedastic_design, patchy, {"n_train": n_train}, seeds, batch_seeds=True),
    ]
