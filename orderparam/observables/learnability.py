r"""The fraction of a target, and of each of its modes, that a network has learned.

For modes $\phi_k$, with $f = \sum_k c_k \phi_k$ and $y = \sum_k d_k \phi_k$ fitted together by
least squares on held-out examples, $L_k = c_k / d_k$; for the whole target
$L = \langle f, y \rangle / \langle y, y \rangle$.
"""

import numpy as np
from jaxtyping import Float

from orderparam.observables.observable import Null, Observed, jackknifed

DRAWS = 999
SOURCE = "Canatar, Bordelon and Pehlevan 2021; Simon et al. 2023"


def learnability(
    outputs: Float[np.ndarray, "example"],
    targets: Float[np.ndarray, "example"],
    modes: Float[np.ndarray, "example mode"] | None = None,
    *,
    seed: int = 0,
) -> list[Observed]:
    """The learnability of the target, or of each mode, on examples that were not trained on.

    Args:
        outputs: f, the outputs of the network, one number for each example; outputs and targets are
            centred.
        targets: y.
        modes: Functions on the same examples, such as eigenvectors of a kernel that was fitted on
            a third set; None for the target as the only mode.
        seed: Seed of the null distribution.

    Returns:
        One `Observed` for each mode. Null hypothesis: the outputs belong to other examples. The
            value is not determined where the interval of d_k contains zero, because the target then
            may not contain the mode.

    Raises:
        ValueError: for outputs, targets and modes of different numbers of examples, and for modes
            that are not fewer than half of the examples.

    Accuracy: the interval is the jackknife over examples, exact for least squares.

    Theory: for kernel ridge regression between 0 and 1, lambda_k / (lambda_k + kappa), with a sum
        of at most n_train (`kernel_regression.self_consistent`). More than that: features were
        learned.

    Source: Canatar, Bordelon and Pehlevan 2021; Simon et al. 2023.

    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = op.observables.learnability(x @ [0.9, 0.1], x @ [1, 1], x)
    >>> [round(float(one.value), 6) for one in found]
    [0.9, 0.1]
    """
    f, y = (np.asarray(one, np.float64).ravel() for one in (outputs, targets))
    n = len(f)
    phi = y[:, None] if modes is None else np.asarray(modes, np.float64).reshape(len(modes), -1)
    if len(y) != n or len(phi) != n:
        raise ValueError(f"{n} outputs, {len(y)} targets, {len(phi)} rows of modes: must be equal")
    if 2 * phi.shape[1] >= n:
        raise ValueError(f"{phi.shape[1]} modes of {n} examples: must be fewer than half")
    f, y, phi = f - f.mean(), y - y.mean(), phi - phi.mean(axis=0)
    inverse = np.linalg.pinv(phi)
    leverage = np.sum(phi * inverse.T, axis=1)
    c, d = inverse @ f, inverse @ y
    left_c, left_d = (
        fit[:, None] - inverse * (one - phi @ fit) / (1 - leverage) for fit, one in ((c, f), (d, y))
    )
    rng = np.random.default_rng(seed)
    drawn = np.array([inverse @ rng.permutation(f) for _ in range(DRAWS)]) / d
    found = []
    for k in range(phi.shape[1]):
        name = "learnability" if modes is None else f"learnability of mode {k + 1}"
        if modes is not None:
            bottom = jackknifed("d", float(d[k]), {"examples": left_d[k]})
            if bottom.low <= 0 <= bottom.high:
                note = "the target may not have the mode"
                found.append(Observed(name, np.nan, note=note, source=SOURCE))
                continue
        null = Null("outputs permuted", drawn[:, k])
        value = float(c[k] / d[k])
        found.append(
            jackknifed(
                name, value, {"examples": left_c[k] / left_d[k]}, null=null,
                p_value=null.p_value(value), source=SOURCE,
            )
        )  # fmt: skip
    return found
