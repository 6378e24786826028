"""The laws for losses in the literature, each as log L in terms of unknowns that are all real
numbers.

additive     L = E + A N^-alpha + B D^-beta
             Hoffmann et al. 2022 (arXiv:2203.15556)
kaplan       L = [(Nc/N)^(alpha/beta) + Dc/D]^beta
             Kaplan et al. 2020 (arXiv:2001.08361)
repeated     additive, D -> U [1 + R (1 - exp(-(D/U - 1)/R))] with U unique ones
             Muennighoff et al. 2023 (arXiv:2305.16264)
offset       L = E + A x^-alpha, x = N or D alone
power        L = A x^-alpha
broken       L = E + A x^-alpha (1 + (x/x0)^(1/s))^(-gain s)
             Caballero et al. 2022 (arXiv:2210.14891)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from orderparam.analysis.scaling_law.runs import Runs

# log N, log D, log U of every run (zeros where a form does not use them)
Inputs = tuple[Array, Array, Array]


@dataclass(frozen=True)
class Form:
    """A parametric law of the loss. log_loss: ln loss of each run, from the unknowns of the fit and
    the inputs. values: the parameters of the law from the unknowns; names: their names."""

    name: str
    names: tuple[str, ...]
    log_loss: Callable[[Float[Array, "unknown"], Inputs], Float[Array, "run"]]
    values: Callable[[np.ndarray], tuple[Any, ...]]
    varies: str  # "N and D", "N or D" or "N, D and U"

    @property
    def unknowns(self) -> int:
        return len(self.names)


def _additive(u: Array, inputs: Inputs) -> Array:
    n, d, _ = inputs
    return logsumexp(
        jnp.stack([jnp.broadcast_to(u[0], n.shape), u[1] - u[3] * n, u[2] - u[4] * d]), axis=0
    )


def _kaplan(u: Array, inputs: Inputs) -> Array:
    n, d, _ = inputs
    return u[3] * jnp.logaddexp(u[2] / u[3] * (u[0] - n), u[1] - d)


def _repeated(u: Array, inputs: Inputs) -> Array:
    n, d, unique = inputs
    lasting = jnp.exp(u[5])
    repeats = jnp.maximum(jnp.exp(d - unique) - 1, 0.0)
    seen = unique + jnp.log1p(-lasting * jnp.expm1(-repeats / lasting))
    return _additive(u, (n, seen, unique))


def _one(inputs: Inputs) -> Array:
    return inputs[0] + inputs[1]  # the other is zero


def _offset(u: Array, inputs: Inputs) -> Array:
    return jnp.logaddexp(u[0], u[1] - u[2] * _one(inputs))


def _power(u: Array, inputs: Inputs) -> Array:
    return u[0] - u[1] * _one(inputs)


def _broken(u: Array, inputs: Inputs) -> Array:
    x, sharpness = _one(inputs), jnp.exp(u[5])
    return jnp.logaddexp(
        u[0], u[1] - u[2] * x - u[4] * sharpness * jnp.logaddexp(0.0, (x - u[3]) / sharpness)
    )


def _e(log: Any) -> Any:
    """The exponential, kept finite where the runs do not bound a coefficient."""
    return np.exp(np.minimum(log, 700.0))


FORMS = {
    form.name: form
    for form in (
        Form(
            "additive",
            ("E", "A", "B", "alpha", "beta"),
            _additive,
            lambda u: (*_e(u[:3]), u[3], u[4]),
            "N and D",
        ),
        Form(
            "kaplan",
            ("Nc", "Dc", "alpha", "beta"),
            _kaplan,
            lambda u: (*_e(u[:2]), u[2], u[3]),
            "N and D",
        ),
        Form(
            "repeated",
            ("E", "A", "B", "alpha", "beta", "R"),
            _repeated,
            lambda u: (*_e(u[:3]), u[3], u[4], _e(u[5])),
            "N, D and U",
        ),
        Form("offset", ("E", "A", "alpha"), _offset, lambda u: (*_e(u[:2]), u[2]), "N or D"),
        Form("power", ("A", "alpha"), _power, lambda u: (_e(u[0]), u[1]), "N or D"),
        Form(
            "broken",
            ("E", "A", "alpha", "x0", "gain", "s"),
            _broken,
            lambda u: (*_e(u[:2]), u[2], _e(u[3]), u[4], _e(u[5])),
            "N or D",
        ),
    )
}


def inputs_of(runs: Runs) -> Inputs:
    """The logarithms of N, D and U of every run."""
    n, d, unique = (
        np.zeros(len(runs)) if column is None else np.log(column) for column in runs.columns[1:]
    )
    return jnp.asarray(n), jnp.asarray(d), jnp.asarray(unique if runs.unique is not None else d)


def fitting(runs: Runs) -> list[Form]:
    """The forms that suit the sizes that were varied."""
    both = runs.parameters is not None and runs.samples is not None
    kind = "N, D and U" if runs.unique is not None else "N and D" if both else "N or D"
    return [
        form
        for form in FORMS.values()
        if form.varies == kind or (kind == "N, D and U" and form.name == "additive")
    ]


def starts(form: Form, runs: Runs) -> np.ndarray:
    """Starts of the fit (start, unknown): exponents on a grid, and the linear coefficients by least
    squares with positive coefficients."""
    from scipy.optimize import nnls

    n, d, _ = (np.asarray(column) for column in inputs_of(runs))
    weight = 1 / runs.loss
    exponents = np.geomspace(0.03, 2.0, 12)

    def linear(columns: list[np.ndarray]) -> np.ndarray:
        scale = np.array([np.max(column * weight) for column in columns])
        found = (
            nnls(np.stack(columns, axis=1) * weight[:, None] / scale, np.ones(len(runs)))[0] / scale
        )
        return np.log(
            np.maximum(
                found, 1e-6 * weight.min() ** -1 / np.maximum(scale * runs.loss.max(), 1e-300)
            )
        )

    one = np.ones(len(runs))
    x = n + d
    found: list[np.ndarray] = []
    if form.name in ("additive", "repeated"):
        pairs = [(a, b) for a in exponents for b in exponents]
        found = [np.array([*linear([one, np.exp(-a * n), np.exp(-b * d)]), a, b]) for a, b in pairs]
        if form.name == "repeated":
            found = [
                np.append(start, np.log(lasting)) for start in found for lasting in (3.0, 15.0)
            ]
    elif form.name == "kaplan":
        for a in exponents:
            for b in exponents:
                coefficients = linear_power(runs.loss, n, d, a, b)
                found.append(np.array([*coefficients, a, b]))
    elif form.name == "power":
        slope, level = np.polyfit(x, np.log(runs.loss), 1)
        found = [np.array([level, -slope])]
    else:
        found = [np.array([*linear([one, np.exp(-a * x)]), a]) for a in exponents]
        if form.name == "broken":
            places = np.quantile(x, (0.25, 0.5, 0.75))
            found = [
                np.array([*s, place, gain, -1.0])
                for s in found
                for place in places
                for gain in (-s[2] / 2, s[2])
            ]
    return np.array(found)


def linear_power(
    loss: np.ndarray, n: np.ndarray, d: np.ndarray, alpha: float, beta: float
) -> tuple[float, float]:
    """log Nc and log Dc of the form "kaplan" at given exponents: L^(1/beta) is linear in
    N^(-alpha/beta) and 1/D."""
    from scipy.optimize import nnls

    columns = np.stack([np.exp(-alpha / beta * (n - n.mean())), np.exp(-(d - d.mean()))], axis=1)
    right = np.exp(np.log(loss) / beta)
    found = np.maximum(nnls(columns / right[:, None], np.ones(len(loss)))[0], 1e-12 * right.min())
    return float(n.mean() + beta / alpha * np.log(found[0])), float(d.mean() + np.log(found[1]))
