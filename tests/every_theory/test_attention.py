"""Every theory of attention as an index model."""

from checks import checks

from orderparam.systems.attention import SeenSequence, TiedAttention

SYSTEMS = [SeenSequence(0.3, 2), SeenSequence(0.8, 1), TiedAttention(2.0)]
globals().update(
    checks(
        "attention",
        SYSTEMS,
        fewer={"attention_state": 6},
        options={"attention_state": {"log2_points": 8}},
        decades=0.3,
        still=("tokens",),
    )
)
