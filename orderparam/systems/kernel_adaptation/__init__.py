"""Feature learning as a kernel that adapts: Bayesian networks whose weights turn towards the
target's direction.

There are theories of the infinitely wide network, of a kernel rescaled by one number, of Gaussian
weights, and of weights with their full distribution (specialisation). Each of these theories exists
averaged over data and on given data. There are also theories of deep networks on given data and of
convolutional networks on patches. Experiments sample or train the networks themselves.
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.kernel_adaptation.convolutional.experiment import (
        SampledConvolutional,
        sampled_convolutional_network,
    )
    from orderparam.systems.kernel_adaptation.convolutional.model import (
        ConvolutionalOnData,
        teacher_data,
    )
    from orderparam.systems.kernel_adaptation.convolutional.theory import (
        ConvolutionalPrediction,
        convolutional_gaussian_layers,
        convolutional_gaussian_process,
    )
    from orderparam.systems.kernel_adaptation.deep.experiment import (
        ParticleLayers,
        SampledDeepNetwork,
        deep_adapted_layers,
        sampled_deep_network,
    )
    from orderparam.systems.kernel_adaptation.deep.linear import (
        LinearNetworkOnData,
        exact_linear_network,
    )
    from orderparam.systems.kernel_adaptation.deep.model import DeepNetworkOnData
    from orderparam.systems.kernel_adaptation.deep.theory import (
        DeepPrediction,
        deep_gaussian_layers,
        deep_gaussian_process,
    )
    from orderparam.systems.kernel_adaptation.dynamics.escape import (
        Escapes,
        escaping_network,
        escaping_neurons,
    )
    from orderparam.systems.kernel_adaptation.dynamics.experiment import (
        Pruned,
        TrainedNetwork,
        langevin_training,
        pruned_classifier,
    )
    from orderparam.systems.kernel_adaptation.dynamics.model import Classifier
    from orderparam.systems.kernel_adaptation.gaussianity import Gaussianity, gaussianity
    from orderparam.systems.kernel_adaptation.network import hermite_target
    from orderparam.systems.kernel_adaptation.on_data.experiment import (
        SampledOnData,
        SampledOnDrawnData,
        SolvedOnDrawnData,
        adapted_weights_on_data,
        draw_network,
        sampled_at_scale,
        sampled_on_data,
        solved_on_drawn_data,
    )
    from orderparam.systems.kernel_adaptation.on_data.model import NetworkOnData
    from orderparam.systems.kernel_adaptation.on_data.theory import (
        DataPrediction,
        ScaledKernelOnData,
        gaussian_process_on_data,
        gaussian_weights_on_data,
        kernel_scaling_on_data,
    )
    from orderparam.systems.kernel_adaptation.patches.examples_needed import (
        MeasuredPatchThreshold,
        PatchExamplesNeeded,
        measured_patch_examples,
        patch_examples_needed,
    )
    from orderparam.systems.kernel_adaptation.patches.experiment import (
        SampledPatches,
        sampled_patches,
    )
    from orderparam.systems.kernel_adaptation.patches.linear_channels import (
        sampled_linear_patches,
    )
    from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork
    from orderparam.systems.kernel_adaptation.pooled.experiment import (
        PooledLayers,
        pooled_layers,
    )
    from orderparam.systems.kernel_adaptation.pooled.model import PooledClassifier
    from orderparam.systems.kernel_adaptation.pooled.pruning import (
        PrunedPooled,
        pruned_pooled_classifier,
    )
    from orderparam.systems.kernel_adaptation.two_layers.all_modes import (
        gaussian_process_all_modes,
    )
    from orderparam.systems.kernel_adaptation.two_layers.escape import EscapeTime, escape_time
    from orderparam.systems.kernel_adaptation.two_layers.examples_needed import (
        ExamplesNeeded,
        MeasuredExamplesNeeded,
        MeasuredThreshold,
        examples_needed,
        measured_examples_needed,
        sampled_examples_needed,
    )
    from orderparam.systems.kernel_adaptation.two_layers.experiment import (
        SampledTwoLayerNetwork,
        draw_data,
        sampled_network,
    )
    from orderparam.systems.kernel_adaptation.two_layers.fixed_shape import (
        ModePrediction,
        ScaledKernel,
        gaussian_process,
        kernel_scaling,
    )
    from orderparam.systems.kernel_adaptation.two_layers.gaussian_weights import (
        GaussianWeights,
        gaussian_weights,
    )
    from orderparam.systems.kernel_adaptation.two_layers.model import (
        AdaptingNetwork,
        ScaledNetwork,
        TwoLayerNetwork,
    )
    from orderparam.systems.kernel_adaptation.two_layers.phase_map import Wells
    from orderparam.systems.kernel_adaptation.two_layers.shares import (
        ShareFreeEnergy,
        UnspecialisedNetwork,
        share_free_energy,
        unspecialised_network,
    )
    from orderparam.systems.kernel_adaptation.two_layers.theory import (
        AdaptedWeights,
        adapted_weights,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "chi": ("adaptation", r"\chi"),
    "eigenvalue_ratio": ("kernel eigenvalue ratio", ""),
    "per_dimension": ("examples per dimension", "n/d"),
    "spread": ("spread along the target", r"d\langle\rho^2\rangle/\sigma_w^2"),
    "total_learnability": ("learnability", ""),
    "rank": ("rank", "k"),
}

__all__ = exported(globals())
