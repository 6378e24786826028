"""Every theory of differential equations."""

from checks import checks

from orderparam.networks.fully_connected import fully_connected
from orderparam.systems.differential_equations import EquationNetwork, EquationRegression, Operator

NETWORK = fully_connected(1, None, "erf", weight_variance=2.0, bias_variance=0.5)
SYSTEMS = [
    EquationRegression([1.0, 0.3, 0.1], [0.5, 1.0, 0.2], 6, Operator(1.0, 0.3, 0.5), 0.1, 0.2),
    EquationRegression([1.0, 0.3], [0.5, 1.0], 6, ridge=0.1, noise=0.2, domain="interval"),
    EquationNetwork([0.5, 1.0], [0.0, 0.3], 5, NETWORK, Operator(1.0, 0.3, 0.5), 0.1),
]
globals().update(
    checks("differential_equations", SYSTEMS, infinite=("equation_error", "solution_error"))
)
