"""The systems of learning in time.

Two questions are asked about a wide network that trains on a fixed training set. What is its error
on new inputs after a training time, averaged over training sets? And how much does a network of
finite width differ from one of infinite width, whose tangent kernel is frozen?
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, part, structure
from orderparam.kernels.spectrum import Spectrum
from orderparam.networks.architecture import Architecture, of_width

# ------------------------------------------------------------------------------------------------
# Training averaged over training sets: linear regression on features with a given spectrum, to
# which the training of a wide network with a frozen tangent kernel is equivalent.


class FeatureTraining(System):
    r"""Linear regression on features with a given covariance, trained by gradient flow for a time.

    The $n$ examples have inputs $x \sim N(0, \mathrm{diag}(\sigma_k))$ and labels $y = \theta \cdot
    x + \sqrt{\Delta}\, \xi$. The weights start at $w_0$, independent of $\theta$, and follow

    $$ \frac{dw}{dt} = -\frac{1}{n} X^T (X w - y) - \lambda w $$

    For a wide network $\sigma_k$ are the eigenvalues of its tangent kernel over the inputs, and $t$
    is n times the time of a flow on the summed loss $\frac12 \sum_\mu (f - y)^2$.

    Conventions: `spectrum.target_power` is $\sigma_k \theta_k^2$, summed over a level; the power of
    the start is `start` * $\sigma_k$ in every mode. Errors have no factor 1/2. A spectrum with a
    tail or with eigenvalues of 0 is refused, because such modes have no dynamics.
    """

    spectrum: Spectrum = part("covariance of the features, with the target's power on it")
    n_train: float = parameter("number of training examples n; need not be an integer", minimum=1)
    time: float = parameter("training time t, of gradient flow on the mean loss", above=0)
    noise: float = parameter("variance Delta of the label noise", minimum=0, default=0.0)
    weight_decay: float = parameter(
        "rate lambda at which weights decay towards zero", minimum=0, default=0.0
    )
    start: float = parameter(
        "variance of every weight at the start; 0 starts at zero", minimum=0, default=0.0
    )

    def __check_init__(self) -> None:
        _all_levels("FeatureTraining", self.spectrum)


def _all_levels(system: str, spectrum: Spectrum) -> None:
    """Raise `ValueError` for a spectrum with modes that have no dynamics."""
    if _any(spectrum.tail > 0) or _any(spectrum.tail_power > 0):
        raise ValueError(
            f"{system}.spectrum has a tail: give all modes as levels, to train them "
            "(of a power law: infinite=False)"
        )
    if _any(spectrum.eigenvalues <= 0):
        raise ValueError(
            f"{system}.spectrum has eigenvalues that are 0: no time learns such a mode; "
            "leave it out, its target power is label noise"
        )


def _any(condition: Any) -> bool:
    """True if a condition holds for any entry; False for traced arrays, whose values are
    unknown."""
    return not isinstance(condition, jax.core.Tracer) and bool(np.any(condition))


class IsotropicTraining(System):
    r"""Linear regression on isotropic inputs, trained by gradient descent with momentum.

    There are $n$ = `sample_ratio` * d examples with inputs $x \sim N(0, 1_d)$ and labels $y =
    \theta \cdot x + \sqrt{\Delta}\, \xi$, $|\theta| = 1$. On the mean loss $\frac{1}{2n} |X w -
    y|^2 + \frac{\lambda}{2} |w|^2$ one step of the heavy ball is

    $$ w_{k+1} = w_k - \eta\, \nabla(w_k) + \beta (w_k - w_{k-1}), \qquad w_{-1} = w_0 = 0 $$
    """

    sample_ratio: float = parameter("examples per dimension n/d", above=0)
    learning_rate: float = parameter("learning rate eta, for the mean loss", above=0, default=0.1)
    momentum: float = parameter("momentum beta", minimum=0, below=1, default=0.0)
    noise: float = parameter("variance Delta of the label noise", minimum=0, default=0.0)
    weight_decay: float = parameter("ridge lambda of the loss", minimum=0, default=0.0)
    input_dim: int = parameter(
        "input dimension d of an experiment", minimum=2, integer=True, default=200
    )
    steps: int = structure("number of steps", minimum=1, default=100)


class SpectralDescent(System):
    r"""Linear regression on features with a given covariance, trained by gradient descent.

    Features, labels and targets are those of `FeatureTraining`. On the mean loss $\frac{1}{2n} |X w
    - y|^2 + \frac{\lambda}{2} |w|^2$ one step of the heavy ball is

    $$ w_{k+1} = w_k - \eta\, \nabla(w_k) + \beta (w_k - w_{k-1}), \qquad w_{-1} = w_0 $$

    For a wide network $\sigma_k$ are the eigenvalues of its tangent kernel over the inputs, and
    $\eta$ is n times the learning rate of the summed loss $\frac12 \sum_\mu (f - y)^2$.

    A spectrum with a tail is refused, because its modes have no dynamics.
    """

    spectrum: Spectrum = part("covariance of the features, with the target's power on it")
    n_train: float = parameter("number of training examples n; need not be an integer", minimum=1)
    learning_rate: float = parameter("learning rate eta, for the mean loss", above=0, default=0.1)
    momentum: float = parameter("momentum beta", minimum=0, below=1, default=0.0)
    noise: float = parameter("variance Delta of the label noise", minimum=0, default=0.0)
    weight_decay: float = parameter("ridge lambda of the loss", minimum=0, default=0.0)
    start: float = parameter(
        "variance of every weight at the start; 0 starts at zero", minimum=0, default=0.0
    )
    steps: int = structure("number of steps", minimum=1, default=100)

    def __check_init__(self) -> None:
        _all_levels("SpectralDescent", self.spectrum)


# ------------------------------------------------------------------------------------------------
# Networks, on one training set or on examples drawn from a pool.


def _one_output(system: str, architecture: Architecture, inputs: Array) -> None:
    """Raise `ValueError` for an architecture in another scaling than "ntk", whose learning rates
    depend on the width, and for an architecture of several outputs, for which there are no
    targets."""
    if architecture.scaling != "ntk":
        raise ValueError(
            f"{system}.architecture has scaling {architecture.scaling!r}: must be 'ntk'"
        )
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(architecture)):
        return
    outputs = of_width(architecture, 2).layers.output_shape(inputs.shape[1:])
    if outputs != (1,):
        raise ValueError(
            f"{system}.architecture ends with an output of shape {outputs}: must be one number"
        )


class NetworkDescent(System):
    r"""A network that learns one training set by gradient descent with momentum.

    The loss is $\frac12 \sum_\mu (f(x_\mu) - y_\mu)^2$, summed over the examples, and one step of
    the heavy ball is $\theta_{k+1} = \theta_k - \eta \nabla L + \beta (\theta_k - \theta_{k-1})$ on
    the trained parameters in the scaling of the architecture.

    With an antisymmetric start the function is $f = (f_1 - f_2)/\sqrt2$ of two copies of the
    network with the same weights. It is zero at the start, and its tangent kernel is that of one
    copy. `ValueError` is raised for shapes that do not fit.
    """

    inputs: Float[Array, "train input"] = parameter("training inputs")
    targets: Float[Array, "train"] = parameter("their targets")
    test_inputs: Float[Array, "test input"] = parameter("inputs at which the error is measured")
    test_targets: Float[Array, "test"] = parameter("their targets")
    architecture: Architecture = part(
        "one output, ntk scaling; where it leaves widths open, `width` fills them"
    )
    width: int = parameter(
        "width of all hidden layers that the architecture leaves open",
        minimum=1,
        integer=True,
        default=128,
    )
    learning_rate: float = parameter(
        "learning rate eta, for the summed loss", above=0, default=0.02
    )
    momentum: float = parameter("momentum beta", minimum=0, below=1, default=0.0)
    steps: int = structure("number of steps", minimum=1, default=50)
    antisymmetric: bool = structure("whether the function starts at zero", default=True)

    def __check_init__(self) -> None:
        _one_output("NetworkDescent", self.architecture, self.inputs)
        pairs = (("targets", "inputs"), ("test_targets", "test_inputs"))
        for one, other in pairs:
            given, wanted = len(getattr(self, one)), len(getattr(self, other))
            if given != wanted:
                raise ValueError(f"NetworkDescent.{one} has {given} entries: must have {wanted}")


class PoolDescent(System):
    r"""A network that learns examples drawn from a pool, with a share of the labels flipped.

    The n training examples are drawn from the N rows of the pool with replacement. A label y = -1
    or 1 is flipped with probability p = `flipped`. The label then has the mean (1 - 2p) y and the
    variance 4 p (1 - p). Test errors are means of [f - (1 - 2p) y]^2 over the whole pool; errors
    against the noisy labels are larger by the variance.

    Training is plain gradient descent on $\frac12 \sum_\mu (f(x_\mu) - y_\mu)^2$ from an
    antisymmetric start, f = 0; errors are recorded at `records` numbers of steps, whose ratios are
    equal.

    `ValueError` is raised for labels other than -1 and 1.
    """

    inputs: Float[Array, "pool input"] = parameter("inputs of the pool")
    labels: Float[Array, "pool"] = parameter("their labels, -1 or 1")
    architecture: Architecture = part(
        "one output, ntk scaling; where it leaves widths open, `width` fills them"
    )
    n_train: int = parameter("number n of training examples", minimum=1, integer=True, default=100)
    flipped: float = parameter(
        "probability p that a label is flipped", minimum=0, maximum=0.5, default=0.2
    )
    width: int = parameter(
        "width of all hidden layers that the architecture leaves open",
        minimum=1,
        integer=True,
        default=128,
    )
    learning_rate: float = parameter(
        "learning rate eta, for the summed loss", above=0, default=0.01
    )
    steps: int = structure("number of steps", minimum=1, default=1000)
    records: int = structure("about how many numbers of steps are recorded", minimum=2, default=40)

    def __check_init__(self) -> None:
        _one_output("PoolDescent", self.architecture, self.inputs)
        if _any(jnp.abs(self.labels) != 1):
            raise ValueError("PoolDescent.labels: must be -1 or 1")

    @property
    def recorded(self) -> np.ndarray:
        """The numbers of steps at which errors are recorded."""
        return np.unique(np.geomspace(1, self.steps, self.records).round().astype(int))
