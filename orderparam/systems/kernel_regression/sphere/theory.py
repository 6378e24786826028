"""The self-consistent theory on the sphere, degree by degree."""

from jaxtyping import Array, Float

from orderparam.core.verb import theory
from orderparam.kernels.effective_ridge import effective_ridge
from orderparam.systems.kernel_regression.learning_curve import LearningCurve
from orderparam.systems.kernel_regression.spectrum.theory.self_consistent import from_ridge
from orderparam.systems.kernel_regression.sphere.model import SphereRegression


class SphereCurve(LearningCurve):
    """Learning curve with learnability: (degree,) L_l, the mean share of a harmonic of degree l that is learned."""

    learnability: Float[Array, "degree"]


@theory
def self_consistent_by_degree(system: SphereRegression) -> SphereCurve:
    """The self-consistent theory, with L_l = lambda_l / (lambda_l + kappa) of every degree."""
    ridge = effective_ridge(system.spectrum, system.n_train, system.temperature)
    curve = from_ridge(system, ridge)
    return SphereCurve(**{name: getattr(curve, name) for name in LearningCurve.dims()}, learnability=ridge.learnability)
