"""Every theory of broken replica symmetry."""

from checks import checks

from orderparam.systems.broken_symmetry import SpinGlass

SYSTEMS = [SpinGlass(0.6, 0.2, 16), SpinGlass(1.3, 0.1, 16), SpinGlass(0.6, 0.0, 16)]
FEWER = {"ground_state": 4, "equilibrium": 4}
globals().update(checks("broken_symmetry", SYSTEMS, fewer=FEWER))
