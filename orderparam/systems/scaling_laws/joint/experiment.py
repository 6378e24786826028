"""Ridge regression on drawn random features of a scale-free problem."""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.core.verb import experiment
from orderparam.kernels.feature_equivalent import gaussian_features
from orderparam.systems.scaling_laws.joint.model import ScaleFreeFeatures
from orderparam.systems.scaling_laws.joint.theory import optimal_ridge

_LARGEST = 100_000  # modes


class MeasuredError(Result):
    """Of one training set and one draw of the features, exact over inputs; without label noise."""

    test_error: Float[Array, ""]


def _drawable(system: ScaleFreeFeatures, **_: object) -> None:
    for name in ("modes", "width"):
        if not jnp.isfinite(getattr(system, name)):
            raise ValueError(f"ScaleFreeFeatures.{name} = inf: an experiment needs a finite number")
    if float(system.modes) > _LARGEST:
        raise ValueError(f"ScaleFreeFeatures.modes = {float(system.modes):g}: an experiment takes at most {_LARGEST}")


@experiment(check=_drawable)
def drawn_regression(
    system: ScaleFreeFeatures, key: PRNGKeyArray, *, penalty: Literal["given", "best"] = "given"
) -> MeasuredError:
    """Gaussian inputs and features, drawn once. penalty: the ridge of the system, or that of `optimal_ridge`."""
    k = jnp.arange(1.0, system.size("modes") + 1)
    eigenvalues, power = k**-system.spectral_decay, k**-system.target_decay
    ridge = system.ridge if penalty == "given" else optimal_ridge(system).ridge
    sizes = system.size("n_train"), system.size("width")
    return MeasuredError(gaussian_features(eigenvalues, power, *sizes, ridge, system.noise, key)[0])
