"""Learning curves of Gaussian-process and kernel regression on random training sets, predicted by
theories and measured.

The parts, in the order in which they are best read:

    learning_curve.py   the results that all theories and experiments share
    spectrum/           a kernel given by its spectrum: theories, and regression on Gaussian
                        features; inputs on the sphere; a ridge that depends on the input
    torus/              inputs on a torus of several dimensions: rates of learning
    pool/               random subsets of a pool of real inputs, and finite networks that learn them
    renormalization.py  modes too small to be learned are integrated out (renormalisation)
    training/           noisy training of a finite network on one training set
    given_kernel.py     the learning curve of a kernel matrix of your own
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.kernel_regression.learning_curve import (
        LearningCurve,
        MeasuredLearningCurve,
    )
    from orderparam.systems.kernel_regression.pool.experiment import (
        NetworkCurve,
        gp_regression,
        network_posterior,
    )
    from orderparam.systems.kernel_regression.pool.model import (
        NetworkRegression,
        PoolRegression,
        image_pool,
    )
    from orderparam.systems.kernel_regression.pool.theory import (
        cavity,
        equivalent_kernel_on_pool,
        self_consistent_on_pool,
    )
    from orderparam.systems.kernel_regression.renormalization import (
        local_renormalization,
        renormalization_group,
    )
    from orderparam.systems.kernel_regression.spectrum.equivalent_kernel import (
        equivalent_kernel,
        equivalent_kernel_corrected,
    )
    from orderparam.systems.kernel_regression.spectrum.experiment import (
        MeanSphereErrors,
        gaussian_design,
        heteroscedastic_design,
        mean_sphere_errors,
        sphere_regression,
    )
    from orderparam.systems.kernel_regression.spectrum.local_ridge import heteroscedastic
    from orderparam.systems.kernel_regression.spectrum.model import (
        HeteroscedasticRegression,
        KernelRegression,
        SphereRegression,
    )
    from orderparam.systems.kernel_regression.spectrum.power_laws import ScalingRegime, scaling_law
    from orderparam.systems.kernel_regression.spectrum.theory import (
        annealed,
        mode_decomposition,
        optimal_temperature,
        self_consistent,
        self_consistent_by_degree,
    )
    from orderparam.systems.kernel_regression.torus.all_waves import (
        AveragedError,
        all_waves_regression,
    )
    from orderparam.systems.kernel_regression.torus.experiment import torus_regression
    from orderparam.systems.kernel_regression.torus.model import TorusRegression
    from orderparam.systems.kernel_regression.training.experiment import hamiltonian, langevin
    from orderparam.systems.kernel_regression.training.model import NetworkTraining
    from orderparam.systems.kernel_regression.training.theory import gaussian_process

__all__ = exported(globals())
