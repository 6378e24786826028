"""The units of a user's two-layer network that a given number of examples identifies."""

import numpy as np
from jaxtyping import Float

from orderparam.core.registry import tool
from orderparam.gaussian import activation as find_activation
from orderparam.gaussian.numerical import Numerical
from orderparam.systems.extensive_width.model import WeightedTeacher
from orderparam.systems.extensive_width.state import BayesOptimal
from orderparam.systems.extensive_width.theory import bayes_optimal


@tool
def predict_identified_units(
    readouts: Float[np.ndarray, "unit"],
    gain: float,
    input_dim: int,
    n_train: int,
    noise: float,
    activation: str,
) -> BayesOptimal:
    r"""The Bayes-optimal state of a learner of $\sum_i v_i \phi(c\, w_i \cdot x/\sqrt d)$, with one
    gain c for all units.

    Args:
        readouts: v of the network.
        gain: Gain c, the standard deviation of the pre-activations for inputs N(0, 1).
        input_dim: Input dimension d.
        n_train: Number of examples.
        noise: Variance of the labels that the network leaves unexplained.
        activation: Name of $\phi$.

    Raises:
        ValueError: for activations with a quadratic component, as in `bayes_optimal`.

    Source: Nguyen, Barbier (2026), by `bayes_optimal`.
    """
    phi = find_activation(activation)
    scaled = Numerical(lambda z: phi(gain * z), f"{activation} of {gain:.3g} z", phi.kinks)
    teacher = WeightedTeacher(input_dim, np.asarray(readouts, float), noise, n_train, scaled)
    return bayes_optimal(teacher)
