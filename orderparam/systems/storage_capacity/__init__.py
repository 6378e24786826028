"""Storage capacity: how many random patterns a perceptron can store, with real and with binary
couplings.

import orderparam as op
from orderparam.systems.storage_capacity import BinaryPatterns, SphericalPatterns, cover
from orderparam.systems.storage_capacity import binary_capacity, capacity, separability

capacity(SphericalPatterns(margin=0.5)).capacity
op.sweep(separability, SphericalPatterns(input_dim=50), {"load": [1.6, 2.0, 2.4]}, seeds=4)
binary_capacity(BinaryPatterns()).capacity
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.storage_capacity.beyond_capacity import (
        BinaryError,
        BrokenCapacity,
        BrokenError,
        binary_minimal_error,
        broken_capacity,
        broken_minimal_error,
    )
    from orderparam.systems.storage_capacity.binary_experiment import (
        Enumerated,
        StorageLimit,
        annealed_search,
        enumerated_solutions,
        storage_limit,
    )
    from orderparam.systems.storage_capacity.binary_theory import (
        BinaryCapacity,
        Solutions,
        binary_capacity,
        solutions,
    )
    from orderparam.systems.storage_capacity.experiment import (
        FewestErrors,
        MeasuredMargin,
        Separability,
        fewest_errors,
        maximal_margin,
        separability,
    )
    from orderparam.systems.storage_capacity.fewest_errors import (
        FewestBinaryErrors,
        fewest_binary_errors,
        fewest_errors_by_programming,
    )
    from orderparam.systems.storage_capacity.learning import (
        CorrectionsBound,
        LearnedPatterns,
        corrections_bound,
        perceptron_learning,
    )
    from orderparam.systems.storage_capacity.measured_volume import MeasuredVolume, measured_volume
    from orderparam.systems.storage_capacity.model import (
        BinaryPatterns,
        SphericalPatterns,
        ThermalPatterns,
    )
    from orderparam.systems.storage_capacity.theory import (
        Capacity,
        InstabilityLine,
        MinimalError,
        StoredMargin,
        SuccessFraction,
        Volume,
        at_line_gardner_derrida,
        capacity,
        cover,
        largest_margin,
        minimal_error,
        volume,
    )
    from orderparam.systems.storage_capacity.thermal import (
        BrokenThermalErrors,
        ErrorsAtTemperature,
        MeasuredThermalErrors,
        ThermalErrors,
        broken_thermal_errors,
        thermal_couplings,
        thermal_errors,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "annealing_sweeps": ("sweeps", ""),
    "capacity": ("capacity", r"\alpha"),
    "margin": ("margin", r"\kappa"),
    "error_fraction": ("fraction of errors", "f"),
    "bias": ("bias", "b"),
}

__all__ = exported(globals())
