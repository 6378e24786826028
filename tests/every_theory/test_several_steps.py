"""Every theory of several giant steps."""

from checks import checks

from orderparam.systems.several_steps import SeveralSteps

SYSTEMS = [SeveralSteps(4.0, 1.5, 0.3, 0.1, target="z + He3(z)/2", activation="erf", steps=3)]
globals().update(checks("several_steps", SYSTEMS))
