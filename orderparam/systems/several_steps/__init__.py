"""Several giant gradient steps: which directions a first layer learns, step by step, on fresh
batches and on one batch."""

from orderparam.core.exported import without_modules
from orderparam.systems.several_steps.experiment import (
    NetworkPath,
    correlation_steps,
    square_loss_steps,
)
from orderparam.systems.several_steps.model import SeveralSteps
from orderparam.systems.several_steps.theory import ReusePath, StepPath, fresh_batches, reused_batch

__all__ = without_modules(globals())
