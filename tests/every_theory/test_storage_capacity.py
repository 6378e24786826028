"""Every theory of storage capacity."""

from checks import checks

from orderparam.systems.storage_capacity import (
    BinaryPatterns,
    SphericalPatterns,
    ThermalPatterns,
)

SYSTEMS = [
    SphericalPatterns(1.5),
    SphericalPatterns(1.0, 0.2),
    SphericalPatterns(1.0, 0.2, 0.3),
    SphericalPatterns(3.0, -0.4),
    BinaryPatterns(0.3, 0.2),
    ThermalPatterns(3.0, 0.4, 0.1),
]
FEWER = {"broken_minimal_error": 4, "broken_capacity": 4, "broken_thermal_errors": 4}
globals().update(checks("storage_capacity", SYSTEMS, infinite=("gap",), fewer=FEWER))
