"""Ridge regression on drawn random features of a scale-free problem."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.kernels.feature_equivalent import gaussian_features
from orderparam.systems.scaling_laws.joint.model import ScaleFree
from orderparam.systems.scaling_laws.joint.theory import optimal_ridge

_LARGEST = 100_000  # modes


class MeasuredError(Result):
    """Of one training set and one draw of the features, exact over inputs; without label noise."""

    test_error: Float[Array, ""]


def _drawable(system: ScaleFree, **_: object) -> None:
    if not float(system.modes) <= _LARGEST:
        raise ValueError(
            f"{type(system).__name__}.modes = {float(system.modes):g}: an experiment takes at most {_LARGEST}"
        )


@experiment(check=_drawable)
def drawn_regression(
    system: ScaleFree, key: PRNGKeyArray, *, penalty: Literal["given", "best"] = "given"
) -> MeasuredError:
    """Gaussian inputs and features, drawn once. penalty: the ridge of the system, or that of
    `optimal_ridge`.
    """
    k = jnp.arange(1.0, system.size("modes") + 1)
    eigenvalues, power = k**-system.spectral_decay, k**-system.target_decay
    ridge = system.ridge if penalty == "given" else optimal_ridge(system).ridge
    return MeasuredError(
        gaussian_features(eigenvalues, power, *system.drawn_sizes, ridge, system.noise, key)[0]
    )
