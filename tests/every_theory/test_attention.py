"""Every theory of attention."""

import numpy as np
from checks import checks

from orderparam.systems.attention import (
    RandomHeads,
    RandomTransformer,
    SeenSequence,
    SequenceRegression,
    TiedAttention,
)

TOKENS = np.array([[[1.0, 0.3], [-0.4, 0.8]], [[0.2, -1.0], [0.7, 0.5]]])
SYSTEMS = [
    SeenSequence(0.3, 2),
    SeenSequence(0.8, 1),
    TiedAttention(2.0),
    RandomHeads(TOKENS),
    RandomHeads(TOKENS, normaliser="identity"),
    RandomTransformer(TOKENS),
    SequenceRegression(20.0, tokens=3, input_dim=4),
]
globals().update(
    checks(
        "attention",
        SYSTEMS,
        fewer={
            "attention_state": 6,
            "head_kernels": 6,
            "head_kurtosis": 6,
            "transformer_kernels": 6,
        },
        options={
            "attention_state": {"log2_points": 8},
            "sector_spectrum": {"log2_points": 8},
            "sector_learning": {"log2_points": 8},
        },
        decades=0.3,
        still=("tokens",),
        infinite=("half_learned",),  # a level of eigenvalue 0
    )
)
