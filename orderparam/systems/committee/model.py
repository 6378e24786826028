"""A committee machine: the label is the majority, or the product, of the signs of hidden units."""

from typing import Literal

from orderparam.core.system import System, parameter, structure
from orderparam.priors.names import law

# Most hidden units: binary weights have 2^K states, and Gaussian averages K dimensions.
LARGEST = 7


class Committee(System):
    r"""A committee machine whose K hidden signs vote or multiply.

    $$ \text{majority: } y = \mathrm{sign} \sum_{k=1}^K \mathrm{sign}(w_k \cdot x); \qquad
       \text{parity: } y = \prod_{k=1}^K \mathrm{sign}(w_k \cdot x) $$

    for $n = \alpha d$ inputs $x \sim N(0, I/d)$ with $\alpha$ = `sample_ratio`, d = `input_dim` and
    K = `hidden`. For even K the majority is 0 in a tie. The entries of the weights $w_k$ are
    independent; the learner knows their prior, which has mean 0 and variance 1.

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
