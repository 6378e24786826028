"""Bayesian networks of finite width on a fixed training set: kernel renormalisation at P ~ N,
compared with sampled networks.

    import orderparam as op
    from orderparam.systems.proportional import (
        FullyConnected, finite_width, infinite_width, sampled_network,
    )

    system = FullyConnected(x, y, x_test, y_test, width=200, temperature=0.1)
    finite_width(system).test_error, infinite_width(system).test_error
    op.sweep(finite_width, system, {"width": [20, 50, 100, 200, 500], "temperature": [0.01, 0.1]})
    op.sweep(sampled_network, system, {"width": [20, 100]}, seeds=4)
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.proportional.deep import branches
    from orderparam.systems.proportional.deep_linear.experiment import SampledLayers, sampled_layers
    from orderparam.systems.proportional.deep_linear.theory import (
        LinearLayers,
        PredictedLayers,
        integrated_width,
        linear_layers,
        zero_temperature_layers,
    )
    from orderparam.systems.proportional.experiment import (
        SampledNetwork,
        SampledSimilarity,
        langevin_training,
        sampled_network,
        sampled_similarity,
    )
    from orderparam.systems.proportional.model import (
        Convolutional,
        FullyConnected,
        LocallyConnected,
    )
    from orderparam.systems.proportional.predict import predict_width
    from orderparam.systems.proportional.results import (
        Branches,
        IntegratedNetwork,
        PredictedSimilarity,
        Prediction,
        RenormalisedKernel,
        RenormalisedNetwork,
    )
    from orderparam.systems.proportional.similarity import kernel_corrected, similarity
    from orderparam.systems.proportional.theory import (
        finite_width,
        infinite_width,
        renormalised_kernel,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "order_parameters": ("order parameters", "Q"),
    "test_bias": ("bias", r"E\,(y-\langle f\rangle)^2"),
    "test_variance": ("variance", r"E\,(f-\langle f\rangle)^2"),
}

__all__ = exported(globals())
