"""Phase diagrams and transitions of any theory. Reading order: `axes`, `points`, `singularity`,
`brackets`, `poles`, `measured`, `transition`, `curves`, `diagram`, `figure`."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.analysis.phases.diagram import Boundary, End, PhaseDiagram, phase_diagram
    from orderparam.analysis.phases.transition import Transition, transition

__all__ = exported(globals())
