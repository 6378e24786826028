"""A committee machine: hidden signs that vote, or that multiply."""

from typing import Literal

from orderparam.core.system import System, parameter, structure

LARGEST = 7  # hidden units: 2^K states of binary weights, and Gaussian averages in K dimensions


class Committee(System):
    """Labels y = sign(sum_k sign(w_k.x)) (majority; 0 where as many say yes as no) or y = prod_k
    sign(w_k.x) (parity).

    n = sample_ratio * d inputs x ~ N(0, I/d); w_k of d independent weights from a known prior of
    variance 1, for k = 1 .. K.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0)
    hidden: int = structure("hidden units K", minimum=1, maximum=LARGEST, default=2)
    rule: Literal["majority", "parity"] = structure(
        "how the signs make the label", default="majority"
    )
    weights: Literal["gaussian", "binary"] = structure(
        "law of a weight: N(0, 1), or +-1", default="gaussian"
    )
    input_dim: float = parameter("dimension d of a run", minimum=2, integer=True, default=1000)
