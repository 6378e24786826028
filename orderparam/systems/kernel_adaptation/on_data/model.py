"""Bayesian two-layer networks on given training sets."""

from jaxtyping import Array, Float

from orderparam.core.fields import parameter
from orderparam.systems.kernel_adaptation.modes.network import AdaptiveNetwork


class NetworkOnData(AdaptiveNetwork):
    """f(x) = sum_c a_c phi(w_c . x) on a given training set, with test points; the weights' law is that of `modes.network`."""

    inputs: Float[Array, "train input"] = parameter("training inputs")
    targets: Float[Array, "train"] = parameter("their targets")
    test_inputs: Float[Array, "test input"] = parameter("test inputs")
    test_targets: Float[Array, "test"] = parameter("their targets")
    width: float = parameter("number of hidden units N", above=0)
    temperature: float = parameter("Langevin temperature T: variance of the observation noise", above=0)
    readout_variance: float = parameter("prior variance of sqrt(N) a_c", above=0, default=1.0)
    weight_variance: float = parameter("prior variance of |w_c|, E |w_c|^2", above=0, default=1.0)


def two_layers(system: NetworkOnData, **_: object) -> None:
    """Refuses the deeper networks that are built on this one, for what would see their first layer alone."""
    widths = getattr(system, "relative_widths", (1.0,))
    if widths != (1.0,):
        raise ValueError(
            f"{type(system).__name__}.relative_widths = {widths}: must be (1.0,), one hidden layer; deeper networks have the "
            "theories `deep_gaussian_layers` and `deep_gaussian_process`"
        )
