"""Learning in time: when training should stop, and how closely a wide network follows the kernel
that it has at the start."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.training_in_time.descent import (
        PoolError,
        SpectralDescentError,
        pool_error,
        spectral_descent_error,
    )
    from orderparam.systems.training_in_time.experiment import (
        DescentPath,
        FlowErrors,
        drawn_descent,
        drawn_flow,
        drawn_pool_kernel,
        drawn_pool_network,
        drawn_spectral_descent,
        trained_network,
    )
    from orderparam.systems.training_in_time.model import (
        FeatureTraining,
        IsotropicTraining,
        NetworkDescent,
        PoolDescent,
        SpectralDescent,
    )
    from orderparam.systems.training_in_time.own_data import (
        BestStop,
        when_to_stop,
        when_to_stop_network,
    )
    from orderparam.systems.training_in_time.theory import (
        DescentError,
        StoppingTime,
        TrainError,
        TrainingError,
        descent_error,
        frozen_kernel,
        gradient_flow_error,
        gradient_flow_train_error,
        stopping_time,
    )

__all__ = exported(globals())
