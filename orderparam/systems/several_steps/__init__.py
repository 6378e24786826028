"""Several giant gradient steps: which directions a first layer learns, step by step, on fresh
batches and on one batch."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.several_steps.experiment import (
        LayerRun,
        NetworkPath,
        correlation_steps,
        layer_steps,
        square_loss_steps,
    )
    from orderparam.systems.several_steps.layer import (
        HiddenPower,
        LayerPath,
        hidden_power,
        layer_error,
    )
    from orderparam.systems.several_steps.model import GiantLayer, SeveralSteps
    from orderparam.systems.several_steps.theory import (
        ReusePath,
        StepPath,
        fresh_batches,
        reused_batch,
    )

__all__ = exported(globals())
