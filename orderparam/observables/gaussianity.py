"""The deviation of pre-activations from a Gaussian distribution over the examples."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from orderparam.observables.observable import Null, Observed, jackknifed

SOURCE = "Fisher 1930 (k-statistics); finite width: Yaida 2020"


def excess_kurtosis(
    preactivations: Float[np.ndarray, "example unit"],
    initial: Sequence[Float[np.ndarray, "example unit"]] = (),
) -> Observed:
    """The excess kurtosis of pre-activations, averaged over units, less that at initialisation.

    In a network at initialisation it is not zero, because inputs and earlier layers are finite. So
    the mean over draws at initialisation on the same inputs is subtracted, and the scatter of these
    draws is the null distribution.

    Args:
        preactivations: Those of one layer (examples, units).
        initial: The same layer of networks at initialisation, 20 or more; without them nothing is
            subtracted and there is no p-value.

    Returns:
        An `Observed`. Its p-value is two-sided. The interval is the jackknife over examples; it
            does not include the scatter of the mean over initialisations, which is in the null
            distribution.

    Raises:
        ValueError: for fewer than 8 examples, and where no unit varies.

    Theory: 0 for infinite width and Gaussian inputs; of order 1/width at initialisation (the topic
        `random_networks`); far from 0 where units specialise on classes.

    Source: Fisher 1930 (k-statistics); Yaida 2020 (finite width).

    >>> h = np.random.default_rng(0).normal(size=(2000, 10))
    >>> found = op.observables.excess_kurtosis(h)
    >>> bool(found.low < 0 < found.high)
    True
    """
    h = _moving(preactivations)
    value, without = _kurtosis(h)
    start = np.array([_kurtosis(_moving(one))[0] for one in initial])
    shift = float(start.mean()) if len(start) else 0.0
    measured = jackknifed(
        "excess kurtosis", value - shift, {"examples": without - shift}, source=SOURCE
    )
    if len(start) < 2:
        note = "not compared with initialisation: give networks at initialisation"
        return replace(measured, note=note)
    drawn = np.abs(start - shift) * np.sqrt(len(start) / (len(start) - 1))
    null = Null("networks at initialisation", drawn)
    return replace(measured, null=null, p_value=null.p_value(abs(measured.value)))


def _moving(preactivations: np.ndarray) -> np.ndarray:
    h = np.asarray(preactivations, np.float64).reshape(len(preactivations), -1)
    if len(h) < 8:
        raise ValueError(f"pre-activations of {len(h)} examples: there must be at least 8")
    h = h - h.mean(axis=0)
    spread = h.std(axis=0)
    moving = spread > 1e-12 * spread.max(initial=0)
    if not moving.any():
        raise ValueError("no unit varies over the examples")
    return h[:, moving] / spread[moving]


def _kurtosis(h: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean k_4/k_2^2 over units, and the same without each example."""
    n, powers = len(h), [h**j for j in range(1, 5)]
    whole = [power.sum(axis=0) for power in powers]
    value = _ratio(n, *whole)
    left = _ratio(n - 1, *(total - power for total, power in zip(whole, powers)))
    return float(value.mean()), left.mean(axis=-1)


def _ratio(n: int, s1: np.ndarray, s2: np.ndarray, s3: np.ndarray, s4: np.ndarray) -> np.ndarray:
    """Fisher's k_4/k_2^2 from power sums."""
    mean = s1 / n
    m2 = s2 / n - mean**2
    m4 = s4 / n - 4 * mean * s3 / n + 6 * mean**2 * s2 / n - 3 * mean**4
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * m4 / m2**2 - 3 * (n - 1))
