r"""The number of directions in which a representation varies.

$$ D = \frac{(\mathrm{tr}\, \Sigma)^2}{\mathrm{tr}\, \Sigma^2} $$

for the covariance $\Sigma$ of the neurons over examples (participation ratio). With few examples or
neurons the plain ratio is far too small; here $\mathrm{tr}\,\Sigma^2$ is the unbiased
`orderparam.observables.hsic`, products of a neuron with itself are left out where the infinite
network is meant, and the bias of the ratio is subtracted by the jackknife.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from orderparam.observables.observable import Observed, clocked, jackknifed
from orderparam.observables.similarity import Estimand, checked, scale_of

SOURCE = "Chun, Canatar, Chung and Lee 2025"


def participation_ratio(variances: Any) -> Any:
    r"""The number of directions that share a variance, 1 if one has all of it.

    $$ D = \frac{(\sum_i \lambda_i)^2}{\sum_i \lambda_i^2} $$

    Args:
        variances: The variances $\lambda_i$ (eigenvalues of a covariance), an array of NumPy or
            JAX, not all zero.

    Returns:
        The ratio, a scalar of the same library.

    Source: Chun, Canatar, Chung and Lee 2025.

    >>> float(participation_ratio(np.array([2.0, 2.0, 0.0])))
    2.0
    """
    return variances.sum() ** 2 / (variances**2).sum()


def dimension(
    x: Float[np.ndarray, "example neuron"], *, estimand: Estimand = "examples"
) -> Observed:
    """The participation ratio of a representation, with an interval.

    Args:
        x: Activations as in `similarity`.
        estimand: "examples" for the network as it is, at most its number of neurons; "neurons" for
            its limit of many neurons.

    Returns:
        An `Observed` without a null hypothesis: whether it is large or small depends on the inputs,
            whose dimension may be measured for comparison.

    Raises:
        ValueError: as `similarity` does.

    Accuracy: the interval is the jackknife over examples and neurons. Cost: n p^2 operations.

    Theory: a linear network of many neurons on inputs of covariance C has (tr C)^2 / tr C^2.

    Source: estimator after Chun, Canatar, Chung and Lee 2025.

    >>> x = np.random.default_rng(0).normal(size=(400, 6))
    >>> found = op.observables.dimension(x)
    >>> bool(found.low < 6 < found.high)
    True
    """
    features = checked("x", x)
    debiased = estimand == "neurons"
    n, p = len(features.values), features.neurons
    if debiased and p < 3:
        return Observed("dimension", np.nan, note="fewer than three neurons", source=SOURCE)
    with clocked() as seconds:
        squares = np.sum(features.values**2, axis=2)  # columns are centred
        variances = squares.sum(axis=0) / (n - 1)
        without_row = (squares.sum(axis=0) - n / (n - 1) * squares) / (n - 2)
        bottom, left = scale_of(features, debiased)

        def top(s: np.ndarray) -> np.ndarray:
            whole = s.sum(axis=-1) ** 2
            return (whole - np.sum(s**2, axis=-1)) / (p * (p - 1)) if debiased else whole

        without = {"examples": top(without_row) / left["examples"]}
        if debiased:
            total, own = variances.sum(), variances**2
            rest = (total - variances) ** 2 - (own.sum() - own)
            without["neurons"] = rest / ((p - 1) * (p - 2)) / left["neurons"]
        measured = jackknifed(
            "dimension", float(top(variances) / bottom), without, estimand=estimand, source=SOURCE
        )
    return replace(measured, seconds=seconds[0])
