"""Phase diagrams and transitions of any theory. Reading order: `axes`, `points`, `brackets`, `measured`, `transition`, `curves`,
`diagram`, `figure`."""

from orderparam.analysis.phases.diagram import Boundary, End, PhaseDiagram, phase_diagram
from orderparam.analysis.phases.transition import Transition, transition
