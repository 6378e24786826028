"""The best ridge at many numbers of examples, searched on the host.

`optimal_ridge` is a program that can be batched, compiled and differentiated; its search contains
the derivatives of the equations that the theory solves, and takes half a minute to trace and
compile. Here two small programs, of the theory and of its derivative, serve a search by SciPy that
advances all numbers of examples at once. The results are the same.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, ArrayLike, Float, Int
from scipy.optimize import elementwise

from orderparam.losses import Square
from orderparam.systems.random_features.model import FeatureRegression
from orderparam.systems.random_features.theory import (
    ITERATED,
    SQUARE,
    FeatureCurve,
    asymptotics,
    iterate,
)

ACCURACY = 1e-12  # of ln ridge
Points = Float[ArrayLike, "point"]


def best_ridges(
    system: FeatureRegression, examples: Float[np.ndarray, "n_train"], objective: str
) -> xr.Dataset:
    """The observables of `optimal_ridge` but for its slope, as functions of n_train (`examples`),
    at the ridge where the observable `objective` is smallest."""
    square = isinstance(system.loss, Square)
    low, high, points = SQUARE if square else ITERATED
    grid = np.log(10.0) * np.linspace(low, high, points)
    n_train, count = examples.astype(float), len(examples)
    tried = np.array(
        [_objective(system, n_train, np.full(count, one), objective, square) for one in grid]
    )
    best = np.argmin(tried, axis=0)
    inside = (best > 0) & (best < points - 1)
    ends = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, points - 1)]

    def slope(
        log_ridge: Float[np.ndarray, "some"], which: Int[np.ndarray, "some"]
    ) -> Float[np.ndarray, "some"]:
        # always all of them, so that one program serves
        everywhere = ends[0].copy()
        everywhere[which] = log_ridge
        return np.asarray(_slope(system, n_train, everywhere, objective))[which]

    found = elementwise.find_root(
        slope,
        ends,
        args=(np.arange(count),),
        tolerances={"xatol": ACCURACY, "xrtol": 0.0, "fatol": 0.0, "frtol": 0.0},
    )
    log_ridge = np.where(inside & found.success, found.x, grid[best])
    places = [
        system.with_(n_train=float(n)).with_summed_ridge(float(np.exp(one)))
        for one, n in zip(log_ridge, n_train, strict=True)
    ]
    curves = [asymptotics(place) for place in places]
    columns = {
        name: ("n_train", np.array([np.asarray(getattr(one, name)) for one in curves]))
        for name in FeatureCurve.dims()
    }
    columns["converged"] = ("n_train", columns["converged"][1] & inside & found.success)
    columns["ridge"] = ("n_train", np.array([float(one.ridge) for one in places]))
    return xr.Dataset(columns, {"n_train": examples})


def _at(
    system: FeatureRegression, n_train: Float[Array, ""], log_ridge: Float[Array, ""]
) -> FeatureRegression:
    return system.with_(n_train=n_train).with_summed_ridge(jnp.exp(log_ridge))


@eqx.filter_jit
def _objective(
    system: FeatureRegression, n_train: Points, log_ridge: Points, objective: str, square: bool
) -> Float[Array, "point"]:
    """The objective, roughly where equations are iterated."""
    theory = asymptotics if square else partial(iterate, tolerance=1e-5, max_steps=300)
    return jax.vmap(lambda n, u: getattr(theory(_at(system, n, u)), objective))(n_train, log_ridge)


@eqx.filter_jit
def _slope(
    system: FeatureRegression, n_train: Points, log_ridge: Points, objective: str
) -> Float[Array, "point"]:
    """The derivative of the objective with respect to ln ridge."""

    def one(n: Float[Array, ""], u: Float[Array, ""]) -> Float[Array, ""]:
        along = (jnp.ones_like(u),)
        return jax.jvp(lambda u: getattr(asymptotics(_at(system, n, u)), objective), (u,), along)[1]

    return jax.vmap(one)(jnp.asarray(n_train), jnp.asarray(log_ridge))
