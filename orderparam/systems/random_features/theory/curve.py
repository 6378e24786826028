"""What the theory of a fixed feature map predicts, and the experiment measures under the same names."""

from jaxtyping import Array, Bool, Float

from orderparam.losses.fitted import FittedErrors


class Minimiser(FittedErrors):
    """What theories and experiments of the minimiser have in common.

    effective_dimension:     tr F (F^T H F + ridge)^-1 F^T H, H = diag l'': the effective number of parameters; for the hinge loss
                             the number of examples on the margin.
    cross_validation:        test_error estimated from training errors alone; for the square loss generalised cross-validation,
                             train_error / (1 - effective_dimension / n)^2.
    residual, converged:     of the equation that was solved, or of the minimisation.
    """

    effective_dimension: Float[Array, ""]
    cross_validation: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class FeatureCurve(Minimiser):
    """A theory's.

    response:        V, by how much the prediction at a new example follows its label when that example is added.
    effective_ridge: nu with sum_i omega_i / (omega_i + nu) = effective_dimension.
    """

    response: Float[Array, ""]
    effective_ridge: Float[Array, ""]
