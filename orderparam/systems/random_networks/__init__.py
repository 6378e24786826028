"""Random networks as random functions, before any training: networks with one hidden layer, which
are solved exactly at every width, and deep networks with their corrections at finite width.

    import jax.numpy as jnp
    import orderparam as op
    from orderparam.systems.random_networks import (
        RandomNetwork, cumulants, marginals, sampled_marginals,
    )

    system = RandomNetwork(jnp.array([[1.0, 0.5], [-0.3, 2.0]]), width=5)
    cumulants(system).fourth_cumulant
    op.sweep(marginals, system, {"width": [1, 5, 500]})
    op.sweep(sampled_marginals, system, {"width": [1, 5]}, seeds=4)
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.random_networks.degrees import (
        CubeNetwork,
        DegreeShares,
        degree_shares,
        measured_degrees,
    )
    from orderparam.systems.random_networks.experiment import (
        MeasuredDepth,
        Sample,
        deep_networks,
        deep_networks_with_weights,
        integrated_marginals,
        sample,
        sampled_covariance,
        sampled_cumulants,
        sampled_density,
        sampled_marginals,
    )
    from orderparam.systems.random_networks.kernel_experiment import (
        angle_networks,
        correlation_networks,
        deep_correlation,
        kernel_spread,
    )
    from orderparam.systems.random_networks.kernels import (
        AngleKernel,
        CorrelationChain,
        DeepCorrelation,
        DeepCumulants,
        KernelSpread,
        OrderChaos,
        angle_kernel,
        correlation_chain,
        deep_cumulants,
        homogeneous_cumulants,
        one_hidden_layer_spread,
        one_input_spread,
        order_chaos,
    )
    from orderparam.systems.random_networks.model import (
        AngledPair,
        DeepNetwork,
        NetworkKernels,
        RandomNetwork,
    )
    from orderparam.systems.random_networks.theory import (
        Cumulants,
        Density,
        KernelMatrix,
        Marginals,
        covariance,
        cumulants,
        density,
        exact_density,
        marginals,
        sixth_cumulant,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "degrees": ("degree", "k"),
    "kurtosis": ("excess kurtosis", ""),
    "mean_degree": ("mean degree without the constant", ""),
    "nngp_bias": ("bias of the NNGP kernel", r"\langle \mathrm{E}\hat K - K, K\rangle / \|K\|^2"),
    "nngp_correlation": ("NNGP kernel", r"K(\theta)/K(0)"),
    "nngp_fluctuation": ("fluctuation of the NNGP kernel", r"\|\delta\hat K\|/\|K\|"),
    "ntk_bias": (
        "bias of the tangent kernel",
        r"\langle \mathrm{E}\hat\Theta - \Theta, \Theta\rangle / \|\Theta\|^2",
    ),
    "ntk_correlation": ("tangent kernel", r"\Theta(\theta)/\Theta(0)"),
    "ntk_fluctuation": ("fluctuation of the tangent kernel", r"\|\delta\hat\Theta\|/\|\Theta\|"),
    "share": ("share of the mean square", ""),
    "width_kurtosis": ("excess kurtosis", r"\times\ N"),
}

__all__ = exported(globals())
