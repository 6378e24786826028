"""Bayesian two-layer networks on targets of one direction.

    f(x) = sum_c a_c phi(w_c . x),  c = 1..N,    x ~ N(0, 1_d),
    y(x) = sum_k y_k h_k(z),  z = w_* . x,  |w_*| = 1,

with the law of the weights of `network`. Rubin, Seroussi, Ringel 2024; Rubin, Fischer, Lindner,
Dahmen, Seroussi, Ringel, Krämer, Helias 2025.
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
    r"""A Bayesian two-layer network, averaged over Gaussian data with a target of one direction.

    $$ f(x) = \sum_{c=1}^{N} a_c\, \phi(w_c \cdot x), \qquad x \sim N(0, 1_d), \qquad
       y(x) = \sum_k y_k h_k(w_* \cdot x) + e\, (|z| - E|z|) $$

    $$ p(w, a) \propto \exp\Big\{ -\frac{d |w|^2}{2v} - \frac{N |a|^2}{2s}
       - \frac{1}{2T} \sum_{\mu=1}^{n} (f(x_\mu) - y_\mu)^2 \Big\} $$

    with d = `input_dim`, N = `width`, n = `n_train`, T = `temperature`, v = `weight_variance`, s =
    `readout_variance`, $h_k = He_k / \sqrt{k!}$, $y_k$ the entries of `target` for k = 0, 1, ...
    (see `hermite_target`), e = `absolute`, $z = w_* \cdot x$ and $|w_*| = 1$. `modes` are the
    degrees k that the theories keep; other components count as not learned.

    Raises:
        ValueError: for a target that is zero.

    Source: Seroussi, Naveh, Ringel (2023); Rubin, Seroussi, Ringel (2024).

    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(
    ...     20, 100, 400, temperature=0.2, target=hermite_target({1: 1, 3: -0.3})
    ... )
    >>> round(float(network.signal), 6), round(float(network.adaptation), 6)
    (100.0, 2000.0)
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
        """The hidden layer as the theories use it."""
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
        """The signal A = readout_variance n / (T d), the eigenvalue of a linear mode divided by the
        ridge. `scaling` does not change it.
        """
        return self.readout_variance * self.n_train / (self.temperature * self.input_dim)

    @property
    def adaptation(self) -> float:
        """The adaptation U = n^2 readout_variance / (T^2 d N), the strength of the residual's force
        on the weights. It grows as chi under `scaling`.
        """
        return (
            self.readout_variance
            * (self.n_train / self.temperature) ** 2
            / (self.input_dim * self.width)
        )


class ScaledNetwork(System):
    """A two-layer network with its input_dim, width and n_train multiplied by `scale` (beta).

    With d, N and n proportional to beta, at fixed temperature and variances, the signal A and the
    adaptation U of the network stay the same. A component that needs n ~ d examples is then learned
    equally well at every beta, and one that needs n ~ d^2 is no longer learned as beta grows.

    Source: Rubin et al. (2025).

    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(
    ...     20, 100, 400, temperature=0.2, target=hermite_target({1: 1, 3: -0.3})
    ... )
    >>> float(ScaledNetwork(network, scale=0.5).scaled.width)
    50.0
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
        """The network at this scale with its sizes rounded to integers, for experiments."""
        at = self.scaled
        return at.with_(
            **{name: round(float(getattr(at, name))) for name in ("input_dim", "width", "n_train")}
        )

    @property
    def hidden(self) -> HiddenLayer:
        """The hidden layer as the theories use it."""
        return self.scaled.hidden


class AdaptingNetwork(ScaledNetwork):
    """A two-layer network whose read-out variance and temperature are divided by `chi`.

    The infinitely wide network does not depend on chi, and the force on the weights grows as chi:
    from standard scaling, chi = 1, to mean-field scaling, chi ~ N.

    Source: Rubin et al. (2025).

    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = TwoLayerNetwork(
    ...     20, 100, 400, temperature=2.0, target=hermite_target({1: 1, 3: -0.3})
    ... )
    >>> float(AdaptingNetwork(network, scale=1.0, chi=10.0).hidden.temperature)
    0.2
    """

    chi: float = parameter(
        "divisor chi of read-out variance and temperature, the strength of adaptation",
        above=0,
        default=1.0,
    )

    @property
    def scaled(self) -> TwoLayerNetwork:
        """The network at this scale and strength."""
        at = super().scaled
        return at.with_(
            temperature=at.temperature / self.chi, readout_variance=at.readout_variance / self.chi
        )
