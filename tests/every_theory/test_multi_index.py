"""Every theory of the neuron that looks for a few directions, and of how hard they are to find."""

from checks import checks

from orderparam.systems.multi_index import SphericalSGD, WeakLearnability

SYSTEMS = [
    SphericalSGD(64, horizon=30.0, target="z1 + z2/2", student="z", first_overlap=0.1, records=5),
    SphericalSGD(64, horizon=30.0, loss="squared", start="signed", records=5),
    WeakLearnability("z1*z2 + z1"),
]
globals().update(checks("multi_index", SYSTEMS))
