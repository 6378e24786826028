"""The layers of real linear networks, sampled by Hamiltonian Monte Carlo over all hidden weights,
with the read-out integrated out exactly.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.kernels.readout import condition_readout
from orderparam.sampling import estimate
from orderparam.sampling.result import FromChains, of_chains
from orderparam.systems.proportional.deep_linear.theory import LINEAR, LinearLayers
from orderparam.systems.proportional.experiment import sampled_hidden
from orderparam.systems.proportional.model import FullyConnected
from orderparam.systems.proportional.posterior import Collapsed, Hidden


class SampledLayers(LinearLayers, FromChains):
    """The layers of sampled linear networks. R-hat and effective samples are the worst values over
    all scales, kernels along the target, and the test error."""


class _Recorded(eqx.Module):
    scales: Float[Array, "layer"]
    on_target: Float[Array, "layer"]
    trace: Float[Array, "layer"]
    mean: Float[Array, "test"]
    variance: Float[Array, ""]


class LinearPosterior(Collapsed):
    """The posterior of the hidden weights of a linear network, with its observables."""

    def record(self, hidden: Hidden) -> _Recorded:
        """Kernels and effective read-outs of all layers, averaged over the read-out."""
        given = self.problem
        # weight matrices of the hidden layers in units of their prior standard deviation, beginning
        # with the first layer
        weights = [
            layer.weight / jnp.sqrt(layer.weight.shape[1])
            for layer in hidden
            if jax.tree.leaves(layer)
        ]
        phi, test = self.features(hidden, given.x), self.features(hidden, given.test)
        posterior = condition_readout(phi, given.y, given.temperature)
        mean, half, y = posterior.mean[:, 0], posterior.half, given.y[:, 0]
        units = phi.shape[1]

        state, kernels = given.x, []
        for weight in weights:
            state = state @ weight.T
            kernels.append(state / jnp.sqrt(weight.shape[0]))
        prior = given.x / jnp.sqrt(given.x.shape[1])

        # The effective read-out a_l of layer l is C_l u with the whitened read-out u of the last.
        backward, scales = jnp.eye(units) / jnp.sqrt(units), []
        for weight in [*weights[:0:-1], None]:
            spread = jnp.sum(backward**2) - jnp.sum((backward @ half.T) ** 2)
            scales.append(jnp.sum((backward @ mean) ** 2) + spread)
            backward = backward if weight is None else weight.T @ backward
        return _Recorded(
            scales=jnp.stack(scales[::-1]),
            on_target=jnp.stack([jnp.sum((y @ k) ** 2) for k in kernels])
            / jnp.sum((y @ prior) ** 2),
            trace=jnp.stack([jnp.sum(k**2) for k in kernels]) / jnp.sum(prior**2),
            mean=test @ posterior.mean[:, 0],
            variance=jnp.mean(posterior.variance(test)),
        )


@experiment(needs=LINEAR)
def sampled_layers(
    system: FullyConnected,
    key: PRNGKeyArray,
    *,
    chains: int = 4,
    warmup: int = 200,
    samples: int = 300,
    leapfrog_steps: int = 8,
) -> SampledLayers:
    r"""Kernels, lengths of effective read-outs and losses of a linear network, by Hamiltonian Monte
    Carlo on all hidden weights.

    $$ \log p(W) = -\tfrac12 |W|^2 - \tfrac12 \log\det(T + \Phi\Phi^T)
       - \tfrac12 y^T (T + \Phi\Phi^T)^{-1} y $$

    with W the whitened hidden weights, $\Phi$ the features that the read-out sees and T the
    `temperature`. The sampler is that of `sampled_network`; `linear_layers` is not used.

    Args:
        chains: number of chains. Default 4.
        warmup: steps of a chain that tune the step size and are discarded. Default 200.
        samples: draws of every chain. Default 300.
        leapfrog_steps: leapfrog steps of a trajectory. Default 8.

    Raises:
        ValueError: for units that are not linear, several outputs, and a width that is not an
            integer.

    Accuracy: statistical; see `r_hat` and `effective_samples`.

    Source: Li, Sompolinsky (2021) for the quantities.

    >>> import jax
    >>> x = np.random.default_rng(0).normal(size=(8, 6))
    >>> system = FullyConnected(
    ...     x[:5], x[:5, 0], x[5:], x[5:, 0], width=4, temperature=0.5, depth=2, activation="linear"
    ... )
    >>> sampled_layers(system, jax.random.key(0), chains=2, warmup=20, samples=8).scales.shape
    (2,)
    """
    lengths = {"warmup": warmup, "samples": samples, "leapfrog_steps": leapfrog_steps}
    collapsed = Collapsed.of(system)
    posterior = LinearPosterior(collapsed.problem, collapsed.readout)
    run = sampled_hidden(
        posterior, chains, jax.random.split(key), LinearPosterior.record, **lengths
    )
    recorded = run.observables
    average = jax.tree.map(lambda values: jnp.mean(values, axis=(0, 1)), recorded)
    test_y = system.test[1][:, 0]
    bias = jnp.mean((average.mean - test_y) ** 2)
    variance = average.variance + jnp.mean((recorded.mean - average.mean) ** 2)
    error = jnp.mean((recorded.mean - test_y) ** 2, axis=-1) + recorded.variance
    health = estimate(
        jnp.concatenate([recorded.scales, recorded.on_target, error[..., None]], axis=-1)
    )
    return SampledLayers(
        **of_chains(run, health),
        scales=average.scales,
        on_target=average.on_target,
        trace=average.trace,
        test_error=bias + variance,
        test_bias=bias,
        test_variance=variance,
    )
