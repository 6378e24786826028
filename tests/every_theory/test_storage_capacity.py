"""Every theory of storage capacity."""

from checks import checks

from orderparam.systems.storage_capacity import BinaryPatterns, SphericalPatterns

SYSTEMS = [
    SphericalPatterns(1.5),
    SphericalPatterns(1.0, 0.2),
    SphericalPatterns(1.0, 0.2, 0.3),
    BinaryPatterns(0.3, 0.2),
]
globals().update(checks("storage_capacity", SYSTEMS, infinite=("gap",)))
