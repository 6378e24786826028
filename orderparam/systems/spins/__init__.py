"""The physics of spins: the mean-field magnet, the Ising model, Potts spins on graphs and the
scalar field, solved exactly and simulated.

import orderparam as op
from orderparam.systems.spins import IsingLattice, kaufman, onsager, swendsen_wang

system = IsingLattice(2.2, (16, 16))
kaufman(system).energy
op.sweep(swendsen_wang, system, {"temperature": [2.0, 2.2, 2.4]}, seeds=4)
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.spins.graph.experiment import graph_clusters, regular_graph_clusters
    from orderparam.systems.spins.graph.model import (
        PottsGraph,
        RegularPotts,
        lattice_edges,
        random_edges,
        regular_edges,
    )
    from orderparam.systems.spins.graph.theory import Cavity, cavity, potts_enumerated
    from orderparam.systems.spins.lattice.experiment import (
        Configuration,
        Correlation,
        Quench,
        configuration,
        correlations,
        metropolis,
        quench,
        swendsen_wang,
        wolff,
    )
    from orderparam.systems.spins.lattice.model import CRITICAL_TEMPERATURE, IsingLattice
    from orderparam.systems.spins.lattice.studies import animate
    from orderparam.systems.spins.lattice.theory import (
        CriticalPoint,
        DiagonalCorrelation,
        InfiniteLattice,
        Torus,
        critical_correlation,
        enumerated,
        finite_size_scaling,
        kaufman,
        onsager,
        torus_correlation,
    )
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
    from orderparam.systems.spins.measurement import MeasuredSpins
    from orderparam.systems.spins.scalar_field.experiment import MeasuredField, field_clusters
    from orderparam.systems.spins.scalar_field.model import ScalarField
    from orderparam.systems.spins.scalar_field.theory import (
        FieldMoments,
        GaussianField,
        best_gaussian_field,
        transfer_matrix,
    )
    from orderparam.systems.spins.thermodynamics import Thermodynamics
    from orderparam.systems.spins.universality.experiment import critical_field, critical_potts
    from orderparam.systems.spins.universality.measurement import CriticalMoments
    from orderparam.systems.spins.universality.model import PottsLattice
    from orderparam.systems.spins.universality.theory import IsingUniversality, ising_universality

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "binder": ("Binder ratio", r"1-\langle m^4\rangle/3\langle m^2\rangle^2"),
    "heat_capacity": ("heat capacity", "c"),
    "field": ("field", "h"),
    "squared_field": ("squared field", r"\langle\phi^2\rangle"),
    "states": ("states", "q"),
    "steps": ("diagonal steps", "n"),
    "correlation": ("correlation", r"\langle s_0 s_r\rangle"),
    "relative_length": ("correlation length", r"\xi/L"),
    "structure_factor": ("structure factor", r"S(2\pi/L)"),
    "binder_slope": ("slope of the Binder ratio", "dU/dK"),
    "energy": ("energy per spin", "e"),
    "magnetisation": ("magnetisation", r"\langle m\rangle"),
}

__all__ = exported(globals())
