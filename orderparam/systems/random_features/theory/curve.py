"""What the theory of a fixed feature map predicts, and the experiment measures under the same names."""

from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result


class Minimiser(Result):
    """Errors and order parameters of the minimiser of loss + penalty: what theories and experiments have in common.

    test_error, train_error: mean of (y - f)^2 without 1/2, label noise included, at new and at training examples.
    test_loss, train_loss:   mean of l(y, f) at new and at training examples.
    classification_error:    P(sign f != y) at new examples; NaN for real labels.
    teacher_overlap:         m = Cov(nu, f) with the teacher's field nu.
    self_overlap:            q = Var f.
    weight_power:            |a|^2 / p.
    effective_dimension:     tr F (F^T H F + ridge)^-1 F^T H, H = diag l'': the effective number of parameters; for the hinge loss
                             the number of examples on the margin.
    cross_validation:        test_error estimated from training errors alone; for the square loss generalised cross-validation,
                             train_error / (1 - effective_dimension / n)^2.
    residual, converged:     of the equation that was solved, or of the minimisation.
    """

    test_error: Float[Array, ""]
    train_error: Float[Array, ""]
    test_loss: Float[Array, ""]
    train_loss: Float[Array, ""]
    classification_error: Float[Array, ""]
    teacher_overlap: Float[Array, ""]
    self_overlap: Float[Array, ""]
    weight_power: Float[Array, ""]
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
