"""Spins: the mean-field magnet and the Ising model, exactly and simulated.

import orderparam as op
from orderparam.systems.spins import IsingLattice, kaufman, onsager, swendsen_wang

system = IsingLattice(2.2, (16, 16))
kaufman(system).energy
op.sweep(swendsen_wang, system, {"temperature": [2.0, 2.2, 2.4]}, seeds=4)
"""

from orderparam.systems.spins.lattice.experiment import Configuration, configuration, metropolis, swendsen_wang, wolff
from orderparam.systems.spins.lattice.finite import Torus, enumerated, kaufman
from orderparam.systems.spins.lattice.infinite import DiagonalCorrelation, InfiniteLattice, critical_correlation, onsager
from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE, IsingLattice
from orderparam.systems.spins.mean_field.experiment import glauber
from orderparam.systems.spins.mean_field.model import MeanFieldMagnet
from orderparam.systems.spins.mean_field.theory import (
    CRITICAL_BINDER,
    Branch,
    Landau,
    Spinodal,
    exact_magnet,
    landau,
    mean_field,
    spinodal,
)
from orderparam.systems.spins.measurement import Measured
from orderparam.systems.spins.thermodynamics import Thermodynamics
