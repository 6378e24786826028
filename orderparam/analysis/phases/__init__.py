"""Phase diagrams and transitions of any theory. Reading order: `axes`, `points`, `singularity`,
`brackets`, `poles`, `measured`, `transition`, `curves`, `diagram`, `figure`."""

from orderparam.analysis.phases.diagram import Boundary, End, PhaseDiagram, phase_diagram
from orderparam.analysis.phases.transition import Transition, transition
