"""Gaussian-process and kernel regression on random training sets: learning curves, measured and predicted.

In the order of reading:

    spectrum/         a kernel by its spectrum: the theories and their own assumption, Gaussian features
    pool/             random subsets of a pool of real inputs, and finite networks that learn them
    renormalization/  modes too small to be learned, integrated out of either
    heteroscedastic/  ridge and label noise that depend on the input, as integrated modes leave them
    sphere/           inputs on the sphere, degree by degree
    training/         noisy training of a network on one training set
"""

from orderparam.systems.kernel_regression.heteroscedastic.experiment import heteroscedastic_design
from orderparam.systems.kernel_regression.heteroscedastic.model import HeteroscedasticRegression
from orderparam.systems.kernel_regression.heteroscedastic.theory import heteroscedastic
from orderparam.systems.kernel_regression.learning_curve import LearningCurve, MeasuredLearningCurve
from orderparam.systems.kernel_regression.pool.experiment import NetworkCurve, gp_regression, network_posterior
from orderparam.systems.kernel_regression.pool.images import image_pool
from orderparam.systems.kernel_regression.pool.model import NetworkRegression, PoolRegression
from orderparam.systems.kernel_regression.pool.theory.cavity import cavity
from orderparam.systems.kernel_regression.pool.theory.equivalent_kernel import equivalent_kernel_on_pool
from orderparam.systems.kernel_regression.pool.theory.self_consistent import self_consistent_on_pool
from orderparam.systems.kernel_regression.renormalization.local import local_renormalization
from orderparam.systems.kernel_regression.renormalization.uniform import renormalization_group
from orderparam.systems.kernel_regression.spectrum.experiment import gaussian_design
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression
from orderparam.systems.kernel_regression.spectrum.theory.equivalent_kernel import (
    equivalent_kernel,
    equivalent_kernel_corrected,
)
from orderparam.systems.kernel_regression.spectrum.theory.optimal import optimal_temperature
from orderparam.systems.kernel_regression.spectrum.theory.power_laws import ScalingRegime, scaling_law
from orderparam.systems.kernel_regression.spectrum.theory.self_consistent import (
    annealed,
    mode_decomposition,
    self_consistent,
)
from orderparam.systems.kernel_regression.sphere.experiment import sphere_regression
from orderparam.systems.kernel_regression.sphere.model import SphereRegression
from orderparam.systems.kernel_regression.sphere.theory import self_consistent_by_degree
from orderparam.systems.kernel_regression.training.experiment import hamiltonian, langevin
from orderparam.systems.kernel_regression.training.model import NetworkTraining
from orderparam.systems.kernel_regression.training.theory import gaussian_process
