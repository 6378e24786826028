"""Associative memory: Hopfield's model in theory and in simulation, networks of largest stability,
dense memories, and stored pictures.

import orderparam as op
from orderparam.systems.associative_memory import Hopfield, phase_lines, recall, replica_symmetric

system = Hopfield(load=0.1, temperature=0.2, spins=2000)
replica_symmetric(system).overlap
phase_lines(system).retrieval_temperature
op.sweep(recall, system, {"load": [0.05, 0.1, 0.15]}, seeds=4)
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.associative_memory.dense.experiment import DenseRecall, dense_recall
    from orderparam.systems.associative_memory.dense.model import DenseMemory, ExponentialMemory
    from orderparam.systems.associative_memory.dense.theory import (
        ExponentialBasin,
        Retrieval,
        SignalToNoise,
        dense_retrieval,
        exponential_basin,
        signal_to_noise,
    )
    from orderparam.systems.associative_memory.hopfield.dynamics import (
        generating_functional,
        parallel_steps,
        statistical_neurodynamics,
    )
    from orderparam.systems.associative_memory.hopfield.experiment import Recall, recall
    from orderparam.systems.associative_memory.hopfield.model import Hopfield
    from orderparam.systems.associative_memory.hopfield.phase_lines import (
        CriticalLoads,
        PhaseLines,
        critical_loads,
        phase_lines,
    )
    from orderparam.systems.associative_memory.hopfield.synchronous import (
        SynchronousState,
        synchronous_state,
    )
    from orderparam.systems.associative_memory.hopfield.theory import (
        GroundStates,
        HopfieldState,
        replica_symmetric,
        zero_temperature,
    )
    from orderparam.systems.associative_memory.images.experiment import (
        Picture,
        Restored,
        one_picture,
        restored,
    )
    from orderparam.systems.associative_memory.images.model import StoredImages
    from orderparam.systems.associative_memory.optimal.experiment import (
        TrainedTrajectory,
        trained_network,
    )
    from orderparam.systems.associative_memory.optimal.model import OptimalStability
    from orderparam.systems.associative_memory.optimal.theory import (
        Basin,
        SelfCoupledStep,
        Trajectory,
        basin,
        overlaps,
        self_coupled_step,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "basin_edge": ("edge of the basin", "m_b"),
    "count": ("stored pictures", ""),
    "damage": ("damaged pixels", ""),
    "exact": ("restored exactly", ""),
    "flip_probability": ("fraction of spins that flip in one step", ""),
    "success": ("recalled", ""),
    "energy": ("energy per neuron", "e"),
}

__all__ = exported(globals())
