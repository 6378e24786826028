"""Attention with tied low-rank weights as an index model: recovery, positions and contents."""

from orderparam.core.exported import without_modules
from orderparam.systems.attention.experiment import (
    TrainedState,
    sequence_passing,
    trained_state,
)
from orderparam.systems.attention.model import SeenSequence, TiedAttention
from orderparam.systems.attention.theory import (
    AttentionState,
    RecoveredVector,
    attention_state,
    recovered_vector,
)

LABELS = {
    "positional_overlap": ("what is learned of positions", "m"),
    "teacher_overlap": ("overlap with the teacher", r"\theta"),
    "free_energy": ("training objective over dimension", ""),
    "cavity_variance": ("variance of the cavity", "V"),
    "weak_threshold": ("samples per dimension of weak recovery", ""),
    "full_threshold": ("samples per dimension of full recovery", ""),
    "sample_ratio": ("sequences over dimension", "n/d"),
    "positional_share": ("positional part of the targets", r"\omega"),
    "token_spread": ("spread of the tokens", "s"),
}

__all__ = without_modules(globals())
