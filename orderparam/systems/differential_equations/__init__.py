"""Differential equations: kernels and networks that learn a function from the differential equation
that it solves."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.differential_equations.experiment import (
        NetworkErrors,
        solved_at_points,
        trained_equation_network,
    )
    from orderparam.systems.differential_equations.model import (
        EquationNetwork,
        EquationRegression,
        Operator,
    )
    from orderparam.systems.differential_equations.theory import (
        EquationCurve,
        EquationErrors,
        equation_learning_curve,
        equation_on_grid,
        wide_equation_network,
    )

LABELS = {
    "equation_error": ("error of the equation", ""),
    "solution_error": ("error of the solution", ""),
}

__all__ = exported(globals())
