"""Perceptrons: learning curves a second beside SciPy, largest margins beside scikit-learn,
hit-and-run steps beside NumPy.

    python benchmarks/generalisation.py

Both columns of a table come from one run on one machine; read the ratios.
"""

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import log_ndtr
from sklearn.svm import SVC
from timing import best_of

import orderparam as op
from orderparam.losses.margin import shortest_vector
from orderparam.systems.generalisation import PerceptronLearning, sampled_students, typical

POINTS = 10_000
DIMENSION, EXAMPLES, SETS, STEPS = 50, 150, 16, 2000


def scipy_overlap(ratio: float) -> float:
    def gap(q: float) -> float:
        def integrand(z: float) -> float:
            u = z * np.sqrt(q / (1 - q))
            return np.exp(-(u**2) - z**2 / 2 - log_ndtr(-u)) / np.sqrt(2 * np.pi)

        return q - ratio / np.pi * quad(integrand, -12, 12, epsabs=1e-12)[0]

    return brentq(gap, 1e-9, 1 - 1e-9, xtol=1e-12)


def signed_patterns(rng: np.random.Generator) -> np.ndarray:
    patterns = rng.standard_normal((SETS, EXAMPLES, DIMENSION))
    return patterns * np.sign(patterns @ rng.standard_normal(DIMENSION))[..., None]


def support_vectors(signed: np.ndarray) -> None:
    """Patterns and their mirror images as two classes: a plane through the origin."""
    labels = np.repeat([1, -1], EXAMPLES)
    for one in signed:
        SVC(kernel="linear", C=1e8, tol=1e-6).fit(np.concatenate([one, -one]), labels)


def numpy_chain(signed: np.ndarray, rng: np.random.Generator) -> None:
    student = np.linalg.lstsq(signed, np.ones(EXAMPLES), rcond=None)[0]
    fields = np.abs(signed @ student)
    for _ in range(STEPS):
        direction = rng.standard_normal(DIMENSION)
        change = signed @ direction
        places = np.arctan2(change, fields)
        t = rng.uniform(places.max() - np.pi / 2, places.min() + np.pi / 2)
        student = student * np.cos(t) + direction * np.sin(t)
        fields = np.maximum(fields * np.cos(t) + change * np.sin(t), 0)


def main() -> None:
    table = Table(
        title=f"orderparam {op.__version__}: d = {DIMENSION}, {EXAMPLES} examples, {SETS} data "
        "sets at once"
    )
    for column in ("what", "ours", "plain", "ratio"):
        table.add_column(column, justify="right")
    ratios = jnp.asarray(np.geomspace(0.1, 100, POINTS))
    for learner in ("Gibbs", "largest margin"):
        many = jax.jit(
            jax.vmap(lambda a, n=learner: typical(PerceptronLearning(a), learner=n).error)
        )
        ours = POINTS / best_of(lambda f=many: f(ratios))
        plain = (
            20 / best_of(lambda: [scipy_overlap(a) for a in np.geomspace(0.1, 100, 20)])
            if learner == "Gibbs"
            else np.nan
        )
        table.add_row(f"{learner}: points/s", f"{ours:.3g}", f"{plain:.3g}", f"{ours / plain:.3g}")
    rng = np.random.default_rng(0)
    signed = signed_patterns(rng)
    ones = np.ones(EXAMPLES)
    ours = SETS / best_of(lambda: [shortest_vector(one, ones) for one in signed])
    plain = SETS / best_of(lambda: support_vectors(signed))
    table.add_row("largest margins/s", f"{ours:.3g}", f"{plain:.3g}", f"{ours / plain:.3g}")
    system = PerceptronLearning(EXAMPLES / DIMENSION, DIMENSION)
    ours = (
        SETS
        * STEPS
        / best_of(lambda: sampled_students(system, jax.random.key(0), data_sets=SETS, steps=STEPS))
    )
    plain = STEPS / best_of(lambda: numpy_chain(signed[0], rng))
    table.add_row("hit-and-run steps/s", f"{ours:.3g}", f"{plain:.3g}", f"{ours / plain:.3g}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
