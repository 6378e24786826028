"""Every theory of spins."""

from checks import checks

from orderparam.systems.spins import IsingLattice, MeanFieldMagnet
from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE

# The second is where `critical_correlation` holds; at any other temperature it says that it does not.
SYSTEMS = [MeanFieldMagnet(0.7, 0.1, 50), IsingLattice(CRITICAL_TEMPERATURE, (4, 4))]
globals().update(checks("spins", SYSTEMS))
