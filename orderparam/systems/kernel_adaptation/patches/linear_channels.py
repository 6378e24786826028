"""Convolutional networks of linear channels, sampled through the one matrix that enters their
output: the cost does not grow with the number of channels.

The read-outs are integrated out. Let U be the matrix whose C rows are the whitened weights u_c,
with w_c = sqrt(v/S) u_c. The posterior depends on the weights through U^T U alone. Under the prior
U^T U = L L^T with L lower triangular, L_ij ~ N(0, 1) below the diagonal and L_ii^2 ~ chi^2 of C - i
degrees of freedom, i = 0, ..., S - 1 (Bartlett 1933). With L_ii = sqrt(C) exp(z_i / sqrt(2C)) all
variables have a spread of about one.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.verb import experiment
from orderparam.gaussian.polynomials import Linear
from orderparam.kernels.readout import condition_readout, log_evidence
from orderparam.sampling import sample
from orderparam.systems.kernel_adaptation.network import HiddenLayer, check_chains
from orderparam.systems.kernel_adaptation.patches.experiment import (
    RecordedPatches,
    SampledPatches,
    drawn_patches,
    summary_of_patches,
)
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork


class TriangularPosterior(eqx.Module):
    """Log density of a square matrix whose entries on the diagonal are z and below it those of
    L."""

    layer: HiddenLayer
    x: Float[Array, "train patch input"]
    y: Float[Array, "train"]

    def triangle(self, entries: Float[Array, "input input"]) -> Float[Array, "input input"]:
        """The lower triangle L."""
        return jnp.tril(entries, -1) + jnp.diag(jnp.exp(self._log_diagonal(entries)))

    def _log_diagonal(self, entries: Array) -> Float[Array, "input"]:
        width = self.layer.width
        return jnp.log(width) / 2 + jnp.diagonal(entries) / jnp.sqrt(2 * width)

    def features(self, triangle: Float[Array, "input input"]) -> Float[Array, "train feature"]:
        """Features Phi, S for every patch, with Phi Phi^T the kernel of the network."""
        amplitude = self.layer.amplitude * self.layer.scale
        return amplitude * (self.x @ triangle).reshape(self.x.shape[0], -1)

    def __call__(self, entries: Float[Array, "input input"]) -> Float[Array, ""]:
        triangle, logs = self.triangle(entries), self._log_diagonal(entries)
        degrees = self.layer.width - jnp.arange(len(logs))
        # entries above the diagonal do not enter the network and follow their prior
        free = jnp.sum(jnp.triu(entries, 1) ** 2)
        prior = degrees @ logs - (jnp.sum(triangle**2) + free) / 2
        fit = log_evidence(self.features(triangle), self.y[:, None], self.layer.temperature)
        return prior + fit

    def record(self, entries: Float[Array, "input input"]) -> RecordedPatches:
        """The observables of one draw; the first axis of a patch is w_*."""
        triangle = self.triangle(entries)
        patches, dim = self.x.shape[1:]
        features = self.features(triangle)
        mean = condition_readout(features, self.y[:, None], self.layer.temperature).mean[:, 0]
        along = mean.reshape(patches, dim) @ triangle[0]
        amplitude = self.layer.amplitude * self.layer.scale
        squares = jnp.sum(triangle**2, axis=1) / self.layer.width
        return RecordedPatches(
            output=amplitude * jnp.sum(along)[None] / jnp.sqrt(patches),
            spread=squares[0],
            linear=squares[0],
            perpendicular=jnp.mean(squares[1:]),
        )


def _check(system: PatchNetwork, chains: int = 2, **options: object) -> None:
    check_chains(system, chains)
    if not isinstance(system.activation, Linear):
        raise ValueError(
            f"PatchNetwork.activation = {system.activation.name!r}: must be 'linear' here; "
            "use sampled_patches for other units"
        )
    if system.channels < system.patch_dim:
        raise ValueError(
            f"PatchNetwork.channels = {system.channels}: must be at least patch_dim = "
            f"{system.patch_dim}"
        )


@experiment(check=_check)
def sampled_linear_patches(
    system: PatchNetwork,
    key: PRNGKeyArray,
    *,
    chains: int = 2,
    warmup: int = 150,
    samples: int = 150,
    trajectory: float = 1.6,
) -> SampledPatches:
    r"""Posterior averages of a convolutional network of linear channels on one random training set,
    by Hamiltonian Monte Carlo on the Gram matrix of its weights.

    The network and its training set are those of `sampled_patches`. The posterior depends on the
    weights $w_c = \sqrt{v/S}\, u_c$ through $U^T U = L L^T$ alone, whose prior is that of Wishart:

    $$ p(L) \propto \prod_{i<S} L_{ii}^{C-i-1}\, e^{-|L|^2/2}\; N\big(y; 0, \Phi\Phi^T + T\big),
       \qquad \Phi_i = \sqrt{\tfrac{s v}{N C S}}\; x_i L $$

    Half of the chains start from the prior, half with the component of the weights along $w_*$
    enlarged to a root mean square of one. Patches, channels and examples are rounded to
    integers.

    Args:
        chains: even number of chains. Default 2.
        warmup: steps of a chain that tune the step size and are discarded. Default 150.
        samples: draws of every chain. Default 150.
        trajectory: length of a trajectory in units of the prior widths, about a quarter of
            a period. Default 1.6. Trajectories of half a period end near the mirror image of their
            start.

    Raises:
        ValueError: for units that are not linear, fewer channels than inputs of a patch, and an odd
            number of chains.

    Accuracy: statistical; see `r_hat` and `effective_samples`.

    Cost: that of N S features on each example, for any number of channels.

    Source: Seroussi, Naveh, Ringel (2023); Bartlett (1933).

    >>> import jax
    >>> from orderparam.systems.kernel_adaptation import hermite_target
    >>> network = PatchNetwork(3, 2, 4, 6, 1.0, hermite_target({1: 1.0}), activation="linear")
    >>> sampled_linear_patches(network, jax.random.key(0), warmup=20, samples=8).output.shape
    (1,)
    """
    data_key, start_key, run_key = jax.random.split(key, 3)
    posterior = TriangularPosterior(*drawn_patches(system, data_key))
    layer, (_, _, dim) = posterior.layer, posterior.x.shape
    draws = jax.random.normal(start_key, (chains, dim, dim))
    along = -jnp.sqrt(2 * layer.width) * jnp.log(layer.scale)
    run = sample(
        posterior,
        draws.at[chains // 2 :, 0, 0].set(along),
        run_key,
        warmup=warmup,
        samples=samples,
        trajectory=trajectory,
        observe=posterior.record,
    )
    return summary_of_patches(layer, run)
