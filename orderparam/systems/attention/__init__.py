"""Attention: a layer with tied low-rank weights as a multi-index model, random layers with many
heads, and regression with the kernels of such layers in each sector under permutations of
tokens."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.attention.experiment import (
        TrainedState,
        sequence_passing,
        trained_state,
    )
    from orderparam.systems.attention.heads.experiment import (
        drawn_head_kernels,
        drawn_head_kurtosis,
        drawn_transformer_kernels,
    )
    from orderparam.systems.attention.heads.model import RandomHeads, RandomTransformer
    from orderparam.systems.attention.heads.theory import (
        AttentionKernels,
        HeadKurtosis,
        head_kernels,
        head_kurtosis,
        transformer_kernels,
    )
    from orderparam.systems.attention.model import SeenSequence, TiedAttention
    from orderparam.systems.attention.sectors.experiment import (
        SectorRegression,
        SectorTraining,
        sector_regression,
        sector_training,
    )
    from orderparam.systems.attention.sectors.model import SequenceRegression
    from orderparam.systems.attention.sectors.theory import (
        SectorLearning,
        SectorSpectrum,
        sector_learning,
        sector_spectrum,
    )
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
    "learnability": ("share of the target that is learned", ""),
    "kurtosis": ("excess kurtosis", ""),
    "head_kurtosis": ("excess kurtosis", r"\times\ H"),
    "heads": ("heads", "H"),
    "sample_ratio": ("sequences over dimension", "n/d"),
    "positional_share": ("positional part of the targets", r"\omega"),
    "token_spread": ("spread of the tokens", "s"),
}

__all__ = exported(globals())
