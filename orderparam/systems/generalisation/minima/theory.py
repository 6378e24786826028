"""What counting weights says about a network's test error."""

import jax.numpy as jnp

from orderparam.core.verb import theory
from orderparam.systems.generalisation.minima.model import ImageClassifier
from orderparam.systems.generalisation.perceptron.theory import Bound


@theory
def counting_bound(system: ImageClassifier) -> Bound:
    """sqrt(W/n), W the number of weights: less than any bound by the Vapnik-Chervonenkis dimension, which for relu networks is of
    the order of W times the depth, up to logarithms (Bartlett, Harvey, Liaw, Mehrabian 2019)."""
    weights = system.width * (system.inputs.shape[1] + system.width + 10)
    return Bound(jnp.sqrt(weights / system.n_train))
