"""Broken replica symmetry: Parisi's solution of the Sherrington-Kirkpatrick spin glass, compared
with parallel tempering."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.broken_symmetry.experiment import TemperedGlass, tempering
    from orderparam.systems.broken_symmetry.model import SpinGlass
    from orderparam.systems.broken_symmetry.theory import (
        GlassEquilibrium,
        GlassLine,
        GlassThermodynamics,
        GroundState,
        SymmetricGlass,
        at_line,
        equilibrium,
        ground_state,
        symmetric,
    )
    from orderparam.systems.broken_symmetry.ultrametricity import (
        MeasuredTriples,
        OverlapTriples,
        overlap_triples,
        tempered_triples,
    )

# axis labels of this topic's quantities: words and symbol
LABELS = {
    "energy": ("energy per spin", "e"),
    "ground_energy": ("lowest energy per spin", "E_0"),
    "overlap_square": ("squared overlap", r"\mathrm{E} \langle q^2 \rangle"),
    "entropy": ("entropy per spin", "s"),
    "field": ("field", "h"),
}

__all__ = exported(globals())
