"""In-context learning: a layer of linear attention that solves new tasks from the examples in their
context, or that remembers its training tasks."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.in_context.experiment import (
        PosteriorErrors,
        TrainedAttention,
        TrainedErrors,
        extrapolated_regression,
        quadratic_regression,
        task_posterior,
        trained_attention,
    )
    from orderparam.systems.in_context.model import LinearAttention, StructuredTasks
    from orderparam.systems.in_context.theory import (
        ContextRidge,
        InContextErrors,
        context_ridge,
        linear_attention,
    )

LABELS = {
    "icl_error": ("error on fresh tasks", ""),
    "idg_error": ("error on the training tasks", ""),
    "task_gap": ("what is remembered of the training tasks", ""),
    "label_share": ("share of the value vector on the label", r"|v_y|/|v|"),
    "effective_ridge": ("effective ridge", r"\nu"),
    "noise": ("label noise", r"\rho"),
    "context_ratio": ("examples in a context over dimension", "l/d"),
    "task_ratio": ("training tasks over dimension", "k/d"),
    "sample_ratio": ("training sequences over squared dimension", "n/d^2"),
    "test_context_ratio": ("examples in a test context over dimension", "l'/d"),
    "test_noise": ("label noise of tests", r"\rho'"),
}

__all__ = exported(globals())
