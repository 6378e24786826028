"""Every theory of spins."""

from checks import checks

from orderparam.systems.spins import IsingLattice, MeanFieldMagnet

SYSTEMS = [MeanFieldMagnet(0.7, 0.1, 50), IsingLattice(2.2, (4, 4))]
globals().update(checks("spins", SYSTEMS))
