"""Every theory of the neuron that looks for a few directions, and of how hard they are to find."""

from checks import checks

from orderparam.systems.multi_index import (
    HintedParity,
    LearnedTarget,
    SphericalSGD,
    WeakLearnability,
)

SYSTEMS = [
    SphericalSGD(64, horizon=10.0, loss="squared", start="signed", records=5),
    WeakLearnability("z1*z2 + z1"),
    LearnedTarget(0.7, "abs(z)"),
    HintedParity(6.0, 0.6),
]
SLOPING = {
    "exit_time": [SYSTEMS[0].with_(horizon=20.0)],
    "state_evolution": [HintedParity(8.0, 0.6)],
}
globals().update(
    checks(
        "multi_index",
        SYSTEMS,
        fewer={"exit_time": 20, "overlap_flow": 2, "grand_staircase": 3, "state_evolution": 10},
        infinite=("next_threshold",),
        decades=0.5,
        sloping=SLOPING,
        silent=("hardness",),  # a target has no numbers
    )
)
