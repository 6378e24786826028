"""How many examples a component of the target needs: n ~ d for weights that adapt, n ~ d^k for a
fixed kernel.

At fixed temperature and variances, with N ~ d neurons and n ~ d examples, the action of a neuron is
d times a function that does not depend on d: the same shares of the target are learned at the same
n/d. In a fixed kernel the component h_k has an eigenvalue ~ d^-k and needs n ~ d^k. Rubin,
Seroussi, Ringel 2024; Rubin et al. 2025.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core import verb
from orderparam.core.result import Result
from orderparam.solve.root import decreasing_root
from orderparam.systems.kernel_adaptation.two_layers.experiment import sampled_network
from orderparam.systems.kernel_adaptation.two_layers.model import TwoLayerNetwork
from orderparam.systems.kernel_adaptation.two_layers.theory import ModePrediction, adapted_weights


class ExamplesNeeded(Result):
    """n at which the learnability of a mode reaches a threshold: examples, and examples / d."""

    examples: Float[Array, ""]
    per_dimension: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@verb.theory
def examples_needed(
    system: TwoLayerNetwork,
    *,
    theory: Callable[[TwoLayerNetwork], ModePrediction] = adapted_weights,
    mode: int = 1,
    threshold: float = 0.15,
    units_per_input: float | None = None,
    power: float = 1.0,
    most: float = 1e3,
) -> ExamplesNeeded:
    """Of a theory averaged over data, searched between n = d and most d^power, where learnability
    must be positive.

    mode: index into the system's modes. units_per_input: N = units_per_input d in place of `width`.
    power: 1 for weights that adapt, k for a fixed kernel. residual: of log learnability.
    """
    d = system.input_dim
    if units_per_input is not None:
        system = system.with_(width=units_per_input * d)

    def missing(log_n: Array, system: TwoLayerNetwork) -> Array:
        return jnp.log(threshold / theory(system.with_(n_train=jnp.exp(log_n))).learnability[mode])

    root = decreasing_root(missing, jnp.log(d), jnp.log(most * d**power), system)
    return ExamplesNeeded(
        jnp.exp(root.value), jnp.exp(root.value) / d, root.residual, root.converged
    )


class MeasuredExamplesNeeded(ExamplesNeeded):
    """By sampled networks. learnability: at n = ratio d (`ratio`); examples: by the power law
    through the two nearest of them.

    residual: 0 (a measurement); r_hat, effective_samples: the worst of the runs. converged: all
    runs are, and the threshold lies between the measured learnabilities.
    """

    ratio: Float[Array, "measured"]
    learnability: Float[Array, "measured"]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]


@verb.experiment
def sampled_examples_needed(
    system: TwoLayerNetwork,
    key: PRNGKeyArray,
    *,
    mode: int = 1,
    threshold: float = 0.15,
    units_per_input: float = 5.0,
    ratios: tuple[float, ...] = (18.0, 36.0),
    samples: int = 300,
) -> MeasuredExamplesNeeded:
    """Networks with N = units_per_input d sampled at n = ratio d for each of the increasing ratios,
    on independent data.
    """
    d = system.size("input_dim")
    system = system.with_(width=round(units_per_input * d))
    keys = jax.random.split(key, len(ratios))
    runs = [
        sampled_network(system.with_(n_train=round(a * d)), one, samples=samples)
        for a, one in zip(ratios, keys)
    ]
    learned = np.asarray([float(run.learnability[mode]) for run in runs])
    above = int(np.clip(np.searchsorted(learned, threshold), 1, len(ratios) - 1))
    pair = slice(above - 1, above + 1)
    inside = bool(learned.min() < threshold < learned.max())
    heights, logs = np.log(np.maximum(learned[pair], 1e-6)), np.log(np.asarray(ratios)[pair])
    found = np.exp(
        logs[0] + (np.log(threshold) - heights[0]) * np.diff(logs)[0] / np.diff(heights)[0]
    )
    return MeasuredExamplesNeeded(
        examples=jnp.asarray(found * d),
        per_dimension=jnp.asarray(found),
        residual=jnp.zeros(()),
        converged=jnp.asarray(inside and all(bool(run.converged) for run in runs)),
        ratio=jnp.asarray(ratios),
        learnability=jnp.asarray(learned),
        r_hat=jnp.max(jnp.stack([run.r_hat for run in runs])),
        effective_samples=jnp.min(jnp.stack([run.effective_samples for run in runs])),
    )
