"""Every theory of spins."""

from checks import checks

from orderparam.systems.spins import (
    IsingLattice,
    MeanFieldMagnet,
    PottsGraph,
    PottsLattice,
    RegularPotts,
    ScalarField,
    lattice_edges,
)
from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE

# The lattice is where `critical_correlation` holds; at any other temperature it says that it does
# not.
SYSTEMS = [
    MeanFieldMagnet(0.7, 0.1, 50),
    IsingLattice(CRITICAL_TEMPERATURE, (4, 4)),
    PottsGraph(0.7, lattice_edges((3, 2)), 3),
    RegularPotts(0.8, 100, 4, 3),
    PottsLattice(0.88, 8),
    ScalarField(-0.5, 0.25, (8,)),
]
# they hold at one temperature: no differences
globals().update(checks("spins", SYSTEMS, silent=("critical_correlation", "torus_correlation")))
