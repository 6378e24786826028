r"""The similarity of two representations (CKA) and their alignment with a target, without the bias
of a finite sample of examples or of neurons.

With $h$ the estimator of `orderparam.observables.hsic` and $p, q$ neurons,

$$ U = \frac{h(K, L)}{\sqrt{h(K, K)\, h(L, L)}} , \qquad
   T = \frac{h(K, L)/(p q)}{\sqrt{S(X) S(Y)}} , \quad
   S(X) = \frac{h(K, K) - \sum_a h(k_a, k_a)}{p (p - 1)} . $$

U is the similarity of the two given networks, estimated for the population of inputs. T is the
similarity of the infinite networks of which the neurons are samples: products of a neuron with
itself are left out of S(X), and out of h(K, L) where x and y have the same neurons (paired). T can
exceed 1. Two layers of one network are not independent samples of neurons, so only U is meaningful
between them.
"""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from orderparam.observables.hsic import (
    Activations,
    Sums,
    combined,
    of_neurons,
    own_terms,
    own_terms_without,
    sums,
)
from orderparam.observables.observable import Null, Observed, clocked, jackknifed

Estimand = Literal["examples", "neurons"]
FEWEST = 8  # examples
DRAWS = 999
# largest number of examples that are permuted; above it half as many permutations give the third
# moment
MOST_ROWS = 1000
SONG = "Song et al. 2012; Kornblith et al. 2019"
NEURONS = "after Chun, Canatar, Chung and Lee 2025; derived here"


def similarity(
    x: Float[np.ndarray, "example neuron"],
    y: Float[np.ndarray, "example neuron"],
    *,
    estimand: Estimand = "examples",
    paired: bool = False,
    seed: int = 0,
    draws: int = DRAWS,
) -> Observed:
    """The similarity of two representations of the same examples, U or T.

    Args:
        x, y: Activations (examples, neurons) or (examples, channels, positions ..): a channel with
            its positions is one neuron.
        estimand: "examples" for U, the two given networks; "neurons" for T, their limit of
            infinitely many neurons. T is meant for independent networks, or with `paired`.
        paired: the neurons of x and y are the same neurons at two times.
        seed: Of the permutations.
        draws: Number of permutations, 0 for no null distribution. Above 1000 examples, 500 of these
            are permuted, which gives the skewness of a Pearson type III distribution with the exact
            variance.

    Returns:
        An `Observed`. Its null hypothesis is that the rows of y belong to other examples of x. The
            value is NaN ("not determined") where the interval of a denominator S contains zero.

    Raises:
        ValueError: for fewer than 8 examples, different numbers of rows, entries that are not
            finite, a representation that is constant, and paired representations with different
            numbers of neurons.

    Accuracy: the interval is the jackknife over examples and, for T, over the neurons of each side.
        It held the truth in 94 to 96 % of 1000 repeats (`benchmarks/inspect_coverage.py`), and in
        more for T at a similarity of 1, where it is too wide. Cost: n p q operations, and as many
        for each permutation.

    Theory: independent representations give 0; the same network, or two wide networks with one
        kernel, give 1. U of two seeds with p neurons each lies below 1 even where the kernels
        agree.

    Source: Song et al. 2012 (h); Kornblith et al. 2019 (the ratio); T after Chun, Canatar, Chung
        and Lee 2025, derived here.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(60, 5))
    >>> round(float(op.observables.similarity(x, x).value), 6)
    1.0
    """
    a, b = checked("x", x), checked("y", y)
    if paired and a.neurons != b.neurons:
        raise ValueError(f"paired: x has {a.neurons} neurons and y {b.neurons}: must be the same")
    sides = (True, True) if estimand == "neurons" else (False, False)
    if estimand not in ("examples", "neurons"):
        raise ValueError(f"estimand = {estimand!r}: must be 'examples' or 'neurons'")
    return _ratio("similarity", a, b, sides, paired and sides[0], seed, draws)


def alignment(
    x: Float[np.ndarray, "example neuron"],
    targets: np.ndarray,
    *,
    estimand: Estimand = "neurons",
    seed: int = 0,
    draws: int = DRAWS,
) -> Observed:
    """The alignment of a representation's kernel with the kernel of the targets.

    $$ A = \\frac{h(K, y y^T)}{\\sqrt{S(X)\\, h(y y^T, y y^T)}} $$

    with products of a neuron with itself left out of S(X) (estimand "neurons"), or with h(K, K) in
    place of S(X) ("examples"). Targets are not neurons: nothing is left out there.

    Args:
        x: As in `similarity`.
        targets: Numbers (examples,) or (examples, outputs); whole numbers of more than two kinds,
            or words, are classes and count as one-hot columns.
        estimand: "examples" for the given network, "neurons" for its limit of many neurons.
        seed, draws: As in `similarity`.

    Returns:
        An `Observed`; its null hypothesis is that the targets belong to other examples.

    Raises:
        ValueError: as `similarity` does.

    Accuracy: as in `similarity`.

    Theory: linear features with covariance Sigma and y = beta . x have
        beta^T Sigma beta / (|beta|^2 sqrt(tr Sigma^2)).

    Source: Cristianini et al. 2002; Cortes, Mohri and Rostamizadeh 2012 (centred); T derived here.

    >>> x = np.random.default_rng(0).normal(size=(500, 4))
    >>> found = op.observables.alignment(x, x[:, 0], estimand="examples")
    >>> bool(found.low < 0.5 < found.high)
    True
    """
    a, b = checked("x", x), checked("targets", target_columns(targets))
    if estimand not in ("examples", "neurons"):
        raise ValueError(f"estimand = {estimand!r}: must be 'examples' or 'neurons'")
    return _ratio("alignment", a, b, (estimand == "neurons", False), False, seed, draws)


def target_columns(targets: np.ndarray) -> Float[np.ndarray, "example output"]:
    """Targets as numbers: classes as one-hot columns, or as one column of -1 and 1 where there are
    two."""
    y = np.asarray(targets)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim == 1 and y.dtype.kind in "biuUS":
        kinds, codes = np.unique(y, return_inverse=True)
        if len(kinds) == 2:
            return 2.0 * codes[:, None] - 1.0
        if len(kinds) > max(2, len(y) // 2) and y.dtype.kind in "iu":
            return y[:, None].astype(np.float64)  # counts, not classes
        return np.eye(len(kinds))[codes]
    return np.asarray(y, np.float64).reshape(len(y), -1)


def checked(name: str, activations: np.ndarray) -> Activations:
    """The activations as `Activations`. Raises `ValueError` if they are not finite real numbers of
    enough examples, or are the same for every example."""
    x = np.asarray(activations)
    if x.ndim < 1 or x.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {x.dtype}: must be real numbers, a row an example")
    if len(x) < FEWEST:
        raise ValueError(f"{name} has {len(x)} examples: there must be at least {FEWEST}")
    if not np.isfinite(x).all():
        raise ValueError(f"{name} holds entries that are not finite")
    features = Activations.of(x)
    if not np.abs(features.values).max(initial=0) > 0:
        raise ValueError(f"{name} is the same for every example")
    return features


def _ratio(
    name: str,
    x: Activations,
    y: Activations,
    sides: tuple[bool, bool],
    paired: bool,
    seed: int,
    draws: int,
) -> Observed:
    """U, T or the alignment. sides: for x and for y, True if it is a sample of neurons."""
    if len(x.values) != len(y.values):
        raise ValueError(
            f"x has {len(x.values)} examples and y {len(y.values)}: rows must be the same examples"
        )
    estimand = "neurons" if any(sides) else "examples"
    fields: dict[str, Any] = {"estimand": estimand, "source": NEURONS if any(sides) else SONG}
    if any(side and one.neurons < 3 for one, side in zip((x, y), sides)):
        note = "fewer than three neurons: ask for the estimand 'examples'"
        return Observed(name, np.nan, note=note, **fields)
    with clocked() as seconds:
        both = sums(x.narrow, y.narrow)
        scales = [scale_of(one, side) for one, side in zip((x, y), sides)]
        top = _numerator(x, y, both, sides, paired)
        open_ones = [
            jackknifed("scale", *scale).low <= 0 for scale, side in zip(scales, sides) if side
        ]
        if any(open_ones):
            value, without = np.nan, dict[str, np.ndarray]()
        else:
            value = top[0] / np.sqrt(scales[0][0] * scales[1][0])
            without = _without(top, scales, paired)
        measured = jackknifed(name, value, without, **fields)
        null = _null(x, y, both, scales, sides, paired, seed, draws) if draws else None
    note = (
        "the interval of a denominator reaches zero: more examples or neurons are needed"
        if np.isnan(value)
        else ""
    )
    p_value = null.p_value(value) if null else np.nan
    return replace(measured, null=null, p_value=p_value, seconds=seconds[0], note=note)


Left = tuple[float, dict[str, np.ndarray]]  # a value, and the values with one unit left out


def scale_of(x: Activations, debiased: bool) -> Left:
    """h(K, K), or the same with the products of a neuron with itself left out and rescaled by p^2 /
    (p (p - 1))."""
    own = sums(x.narrow, x.narrow)
    if not debiased:
        return own.value, {"examples": own.without}
    p, alone = x.neurons, own_terms(x, x)
    pairs = own.value - alone.sum()
    rows = own.without - own_terms_without(x, x)
    neurons = pairs - 2 * (of_neurons(x, x) - alone)
    return pairs / (p * (p - 1)), {
        "examples": rows / (p * (p - 1)),
        "neurons": neurons / ((p - 1) * (p - 2)),
    }


def _numerator(
    x: Activations, y: Activations, both: Sums, sides: tuple[bool, bool], paired: bool
) -> Left:
    """The numerator, and its values with one example, one neuron of x, or one neuron of y (or one
    pair of them) left out."""
    p, q = (one.neurons if side else 1 for one, side in zip((x, y), sides))
    if paired:
        alone = own_terms(x, y)
        pairs = both.value - alone.sum()
        rows = both.without - own_terms_without(x, y)
        neurons = pairs - of_neurons(x, y) - of_neurons(y, x) + 2 * alone
        return pairs / (p * (p - 1)), {
            "examples": rows / (p * (p - 1)),
            "neurons": neurons / ((p - 1) * (p - 2)),
        }
    left = {"examples": both.without / (p * q)}
    if sides[0]:
        left["neurons of x"] = (both.value - of_neurons(x, y)) / ((p - 1) * q)
    if sides[1]:
        left["neurons of y"] = (both.value - of_neurons(y, x)) / (p * (q - 1))
    return both.value / (p * q), left


def _without(top: Left, scales: list[Left], paired: bool) -> dict[str, np.ndarray]:
    """The ratio with each unit left out."""
    (s, left_s), (t, left_t) = scales

    def root(product: np.ndarray) -> np.ndarray:
        return np.sqrt(np.where(product > 0, product, np.nan))

    found = {"examples": top[1]["examples"] / root(left_s["examples"] * left_t["examples"])}
    if paired:
        found["neurons"] = top[1]["neurons"] / root(left_s["neurons"] * left_t["neurons"])
    if "neurons of x" in top[1]:
        found["neurons of x"] = top[1]["neurons of x"] / root(left_s["neurons"] * t)
    if "neurons of y" in top[1]:
        found["neurons of y"] = top[1]["neurons of y"] / root(s * left_t["neurons"])
    return found


def _null(
    x: Activations,
    y: Activations,
    both: Sums,
    scales: list[Left],
    sides: tuple[bool, bool],
    paired: bool,
    seed: int,
    draws: int,
) -> Null:
    """The ratio for permuted rows of y. Its mean is zero and, unless products of equal neurons are
    left out of the numerator, its variance is 2 h(K, K) h(L, L) / (n (n - 3)) over that of the
    denominators."""
    rng = np.random.default_rng(seed)
    scale = _count(x, y, sides, paired) * np.sqrt(max(scales[0][0] * scales[1][0], 0.0)) or np.nan
    if len(x.values) <= MOST_ROWS:
        return Null("rows permuted", _permuted(x, y, both, paired, draws, rng) / scale)
    some = rng.choice(len(x.values), MOST_ROWS // 2, replace=False)
    a, b = (Activations(one.values[some] - one.values[some].mean(axis=0)) for one in (x, y))
    fewer, spread = sums(a.narrow, b.narrow), _spread(x, y, len(x.values))
    drawn = _permuted(a, b, fewer, False, draws, rng) / _spread(a, b, len(some))
    return Null("rows permuted", drawn * spread / scale, float((spread / scale) ** 2))


def _spread(x: Activations, y: Activations, n: int) -> float:
    """The standard deviation of h(K, L) for permuted rows."""
    own = sums(x.narrow, x.narrow).value * sums(y.narrow, y.narrow).value
    return float(np.sqrt(2 / (n * (n - 3)) * own))


def _permuted(
    x: Activations, y: Activations, both: Sums, paired: bool, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """h(K, L) for permuted rows of y, without the terms of equal neurons where x and y are
    paired."""
    n, u, v = both.n, x.narrow, y.narrow
    by_kernel = 5 * n < u.shape[1] * v.shape[1]
    kernels = (u @ u.T, v @ v.T) if by_kernel else None
    u2, v2 = np.sum(u**2, axis=1), np.sum(v**2, axis=1)
    found = np.empty(draws)
    for draw in range(draws):
        order = rng.permutation(n)
        cross = (
            np.sum((u.T @ v[order]) ** 2)
            if kernels is None
            else np.vdot(kernels[0], kernels[1][np.ix_(order, order)])
        )
        kl = both.k @ both.l[order]
        found[draw] = combined(n, cross - u2 @ v2[order], both.k.sum(), both.l.sum(), kl)
        if paired:
            found[draw] -= own_terms(x, replace(y, values=y.values[order])).sum()
    return found


def _count(x: Activations, y: Activations, sides: tuple[bool, bool], paired: bool) -> int:
    """The number of pairs of neurons in the numerator."""
    p, q = (one.neurons if side else 1 for one, side in zip((x, y), sides))
    return p * (p - 1) if paired else p * q
