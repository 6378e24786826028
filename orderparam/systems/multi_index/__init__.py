"""Targets that depend on a few hidden directions: exponents that measure how hard they are to
learn, exit times of SGD with fresh and with reused samples, and message passing.
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.gaussian.target import Target, target
    from orderparam.systems.multi_index.experiment import climbed_staircase, measured_hermite_power
    from orderparam.systems.multi_index.exponents import TargetExponents, exponents, table
    from orderparam.systems.multi_index.hinted_parity import (
        first_seen,
        leading_eigenvectors,
        message_passing,
        spectral,
        state_evolution,
    )
    from orderparam.systems.multi_index.model import (
        Climb,
        ExitTime,
        Hardness,
        HermitePower,
        HintedOverlaps,
        HintedParity,
        HintedSpectrum,
        LearnedTarget,
        OverlapPath,
        SphericalSGD,
        WeakLearnability,
    )
    from orderparam.systems.multi_index.sgd_experiment import (
        exit_chain,
        overlap_chain,
        trained_neuron,
    )
    from orderparam.systems.multi_index.theory import (
        drift_and_spread,
        exit_time,
        grand_staircase,
        hardness,
        overlap_flow,
    )
    from orderparam.systems.multi_index.weak_recovery import WeakThreshold, threshold

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "exit_samples": ("samples until exit", "n"),
    "exit_steps": ("steps until exit", "n/b"),
    "hint": ("overlap of the hint", "Q"),
    "next_threshold": ("samples per dimension of the next directions", ""),
}

__all__ = exported(globals())
