"""The systems: weights observed through random or rotationally invariant projections."""

from orderparam.channels import Likelihood, channel
from orderparam.core.system import System, parameter, part
from orderparam.priors import Prior, prior

# ------------------------------------------------------------------------------------------------
# Weights observed through random projections and a law of labels.


class GeneralisedLinear(System):
    r"""Labels $y \sim P(y | \nu)$ of fields $\nu = w \cdot x$, with weights $w_i$ drawn from a
    prior.

    There are $n = \alpha d$ inputs $x \sim N(0, I/d)$, $\alpha$ = `sample_ratio`. The prior and the
    law of the labels are known to the estimator; $\rho = E w^2$ is the variance of the fields.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0, default=1.0)
    labels: Likelihood = part("law of the labels given the field", convert=channel, default="sign")
    prior: Prior = part("law of a weight", convert=prior, default="gaussian")
    input_dim: float = parameter("dimension d of a run", minimum=2, integer=True, default=1000)


# ------------------------------------------------------------------------------------------------
# Linear measurements by a rotationally invariant matrix.


class InvariantDesign(System):
    r"""Linear measurements $y = X w + \sqrt\Delta z$ by a rotationally invariant matrix.

    $X = U S V^T$ has $n = \alpha d$ rows ($\alpha$ = `sample_ratio`) and random rotations $U$, $V$;
    $\Delta$ is `noise`. The min(n, d) singular values are spaced evenly in their logarithm, the
    largest being `condition` times the smallest, with $\sum s^2 = n$ as for Gaussian entries of
    variance 1/d. For `condition` = 1 the rows (or columns) are orthogonal.
    """

    sample_ratio: float = parameter("samples per dimension alpha = n/d", above=0, default=1.0)
    condition: float = parameter(
        "largest singular value over the smallest", minimum=1, maximum=1e6, default=1.0
    )
    noise: float = parameter("variance of the label noise", above=0, default=0.01)
    prior: Prior = part("law of a weight", convert=prior, default="sparse")
    input_dim: float = parameter("dimension d of a run", minimum=2, integer=True, default=1000)
