"""A committee machine: the label is the majority, or the product, of the signs of hidden units."""

from typing import Literal

from orderparam.core.system import System, parameter, structure
from orderparam.priors.names import law

# Largest number K of hidden units: binary weights of K units have 2^K states, and averages over K
# Gaussian fields are K-dimensional integrals.
LARGEST = 7


class Committee(System):
    r"""A committee machine: the label is the majority or the product of the signs of K hidden
    units.

    $$ \text{majority: } y = \mathrm{sign} \sum_{k=1}^K \mathrm{sign}(w_k \cdot x); \qquad
       \text{parity: } y = \prod_{k=1}^K \mathrm{sign}(w_k \cdot x) $$

    for $n = \alpha d$ inputs $x \sim N(0, I/d)$ with $\alpha$ = `sample_ratio`, d = `input_dim` and
    K = `hidden`. `rule` is "majority" or "parity". For even K the majority is 0 in a tie, which is
    a third label. The entries of the weights $w_k$ are independent draws of `weights`, with mean 0
    and variance 1. The student knows this law and the form of the label, but not the weights.

    Source: Aubin, Maillard, Barbier, Krzakala, Macris, Zdeborová (2018).

    >>> Committee(2.5, hidden=3, rule="parity").hidden
    3
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0, default=1.0)
    hidden: int = structure("hidden units K", minimum=1, maximum=LARGEST, default=2)
    rule: Literal["majority", "parity"] = structure(
        "how the signs make the label", default="majority"
    )
    weights: Literal["gaussian", "binary"] = structure(
        "law of a weight: N(0, 1), or +-1",
        convert=law("gaussian", "binary"),
        default="gaussian",
    )
    input_dim: float = parameter("dimension d of a run", minimum=2, integer=True, default=1000)
