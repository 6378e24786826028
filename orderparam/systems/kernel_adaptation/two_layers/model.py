"""Bayesian two-layer networks on targets of one direction: the width, the data and the scaling that
let the weights adapt.

    f(x) = sum_c a_c phi(w_c . x),  c = 1..N,    x ~ N(0, 1_d),    y(x) = sum_k y_k h_k(z),  z = w_* . x,  |w_*| = 1,

with the weights' law of `network`. Rubin, Seroussi, Ringel 2024; Rubin, Fischer, Lindner, Dahmen,
Seroussi, Ringel, Krämer, Helias 2025.
"""

from jaxtyping import Array, Float

from orderparam.core.fields import parameter, part, structure
from orderparam.core.system import System
from orderparam.systems.kernel_adaptation.network import (
    AdaptiveNetwork,
    Degrees,
    HermiteTarget,
    HiddenLayer,
    increasing,
    kept_degrees,
    refuse_zero,
)


class TwoLayerNetwork(AdaptiveNetwork):
    """A two-layer network, averaged over Gaussian data.

    target: (degree,) the coefficients y_k of h_k, k = 0, 1, ..: see `hermite_target`.
    absolute: adds absolute * (|z| - E|z|) to the target.
    modes: the h_k that the theory keeps, see `network.kept_degrees`; others count as not learned.

    Raises `ValueError` for a target that is zero.
    """

    input_dim: float = parameter("input dimension d", minimum=3)
    width: float = parameter("number of hidden units N", above=0)
    n_train: float = parameter("number of training examples n", above=0)
    temperature: float = parameter(
        "Langevin temperature T: variance of the observation noise", above=0
    )
    target: Float[Array, "degree"] = parameter(
        "coefficients of the normalised Hermite polynomials in the target"
    )
    readout_variance: float = parameter("prior variance of sqrt(N) a_c", above=0, default=1.0)
    weight_variance: float = parameter("prior variance of |w_c|, E |w_c|^2", above=0, default=1.0)
    absolute: float = parameter("coefficient of |z| - E|z| in the target", default=0.0)
    modes: Degrees | None = structure(
        "increasing degrees of the Hermite polynomials kept; None: by activation",
        minimum=0,
        convert=increasing,
        default=None,
    )

    def __check_init__(self) -> None:
        refuse_zero("TwoLayerNetwork", self.target, self.absolute)

    @property
    def hidden(self) -> HiddenLayer:
        """What the theories see."""
        return HiddenLayer(
            self.input_dim,
            self.width,
            self.n_train,
            self.temperature,
            self.readout_variance,
            self.weight_variance,
            HermiteTarget(self.target, self.absolute),
            self.activation,
            kept_degrees(self.activation, self.modes),
        )

    @property
    def signal(self) -> float:
        """A = readout_variance n / (T d): a linear mode against the ridge. Fixed along every
        `scaling`.
        """
        return self.readout_variance * self.n_train / (self.temperature * self.input_dim)

    @property
    def adaptation(self) -> float:
        """U = n^2 readout_variance / (T^2 d N): the pull of the residual on the weights. Grows as
        chi along `scaling`.
        """
        return (
            self.readout_variance
            * (self.n_train / self.temperature) ** 2
            / (self.input_dim * self.width)
        )


class ScaledNetwork(System):
    """`network` with its input_dim, width and n_train multiplied by `scale` (beta).

    With d, N and n proportional to beta, at fixed temperature and variances, the signal A and the
    adaptation U of the network stay the same. What needs n ~ d is then learned alike at every beta,
    and what needs n ~ d^2 is lost as beta grows.
    """

    network: TwoLayerNetwork = part("the network at scale 1")
    scale: float = parameter("factor beta of input dimension, width and training examples", above=0)

    @property
    def scaled(self) -> TwoLayerNetwork:
        """The network at this scale."""
        at = self.network
        return at.with_(
            input_dim=self.scale * at.input_dim,
            width=self.scale * at.width,
            n_train=self.scale * at.n_train,
        )

    @property
    def drawn(self) -> TwoLayerNetwork:
        """The same with whole sizes, for experiments: the nearest ones."""
        at = self.scaled
        return at.with_(
            **{name: round(float(getattr(at, name))) for name in ("input_dim", "width", "n_train")}
        )

    @property
    def hidden(self) -> HiddenLayer:
        """What the theories see."""
        return self.scaled.hidden
