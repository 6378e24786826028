"""Storage capacity: how many random patterns a perceptron can store, with real couplings and with binary ones.

import orderparam as op
from orderparam.systems.storage_capacity import BinaryPatterns, SphericalPatterns, binary_capacity, capacity, cover, separability

capacity(SphericalPatterns(margin=0.5)).capacity
op.sweep(separability, SphericalPatterns(input_dim=50), {"load": [1.6, 2.0, 2.4]}, seeds=4)
binary_capacity(BinaryPatterns()).capacity
"""

from orderparam.systems.storage_capacity.binary.experiment import (
    Enumerated,
    StorageLimit,
    annealed_search,
    enumerated_solutions,
    storage_limit,
)
from orderparam.systems.storage_capacity.binary.model import BinaryPatterns
from orderparam.systems.storage_capacity.binary.theory import BinaryCapacity, Solutions, binary_capacity, solutions
from orderparam.systems.storage_capacity.spherical.experiment import (
    FewestErrors,
    LearnedPatterns,
    MeasuredMargin,
    Separability,
    fewest_errors,
    maximal_margin,
    perceptron_learning,
    separability,
)
from orderparam.systems.storage_capacity.spherical.model import SphericalPatterns
from orderparam.systems.storage_capacity.spherical.theory import (
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
