"""Learning from models: students that learn from a teacher's labels, generations of models that are
trained on the labels of earlier generations, and covariate shift."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.learning_from_models.experiment import (
        DrawnGenerations,
        DrawnLabels,
        DrawnShift,
        drawn_generations,
        drawn_labels,
        drawn_shift,
    )
    from orderparam.systems.learning_from_models.model import ModelChain, PoolChain, ShiftedPool
    from orderparam.systems.learning_from_models.theory import (
        BestLabels,
        BestMixing,
        GenerationErrors,
        ShiftedErrors,
        best_labels,
        best_mixing,
        generation_errors,
        shifted_errors,
    )

LABELS = {
    "truth_share": ("share of true labels", r"\omega"),
    "teacher_n_train": ("examples of the teacher", "n_1"),
    "noise": ("label noise", "s"),
    "ridge": ("ridge", "T"),
    "error_by_kept": ("error against the truth", ""),
    "final_error": ("error of the last generation", ""),
    "mask_error": ("error with masked labels", ""),
    "optimal_error": ("error with the best labels", ""),
    "truth_error": ("error with true labels", ""),
}

__all__ = exported(globals())
