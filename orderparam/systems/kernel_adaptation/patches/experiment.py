"""The posterior of the convolutional network on patches: shared weights by HMC, read-outs integrated exactly."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from orderparam.core.result import Result
from orderparam.kernels.readout import condition_readout, log_evidence
from orderparam.sampling import estimate, sample
from orderparam.systems.kernel_adaptation.modes.overlaps import overlaps
from orderparam.systems.kernel_adaptation.patches.model import PatchNetwork


class PatchPosterior(eqx.Module):
    """Log density of whitened weights u, w = sqrt(v/S) u:  -|u|^2/2 + log p(y | Phi), Phi_ic = sqrt(s/(N C)) phi(w_c . x_i)."""

    x: Float[Array, "train patch input"]
    y: Float[Array, "train"]
    system: PatchNetwork

    @property
    def scale(self) -> Float[Array, ""]:
        """sqrt(v/S)."""
        return jnp.sqrt(jnp.asarray(self.system.weight_variance, float) / self.x.shape[2])

    def features(self, u: Float[Array, "channel input"]) -> Float[Array, "train feature"]:
        """Phi, patch by patch."""
        system, (count, patches, _) = self.system, self.x.shape
        amplitude = jnp.sqrt(jnp.asarray(system.readout_variance, float) / (patches * u.shape[0]))
        return amplitude * system.phi(self.x @ (self.scale * u).T).reshape(count, -1)

    def __call__(self, u: Float[Array, "channel input"]) -> Float[Array, ""]:
        return log_evidence(self.features(u), self.y[:, None], self.system.temperature) - jnp.sum(u**2) / 2


class _Recorded(eqx.Module):
    output: Float[Array, "mode"]
    spread: Float[Array, ""]
    linear: Float[Array, ""]
    perpendicular: Float[Array, ""]


class SampledPatches(Result):
    """Averages over the posterior of one data set; fields as in the theories.

    output: N^(-1/2) sum_i E f h_k(w_* . x_i) of the posterior mean f. spread: S <(w . w_*)^2> / weight_variance.
    eigenvalue_ratio: of the network's own kernel, on h_1 of a patch over on the S - 1 linear functions across w_*.
    r_hat, effective_samples: worst over output and spread of all chains, half of which start with every channel along w_*.
    converged: R-hat < 1.05 and 100 effective samples.
    """

    degree: Float[Array, "mode"]
    output: Float[Array, "mode"]
    learnability: Float[Array, "mode"]
    total_learnability: Float[Array, ""]
    spread: Float[Array, ""]
    eigenvalue_ratio: Float[Array, ""]
    acceptance: Float[Array, ""]
    r_hat: Float[Array, ""]
    effective_samples: Float[Array, ""]
    converged: Bool[Array, ""]


def sampled_patches(
    system: PatchNetwork,
    key: PRNGKeyArray,
    chains: int = 2,
    warmup: int = 150,
    samples: int = 150,
    leapfrog_steps: int = 8,
) -> SampledPatches:
    """The network on one random training set, by HMC. Half of the chains start from the prior, half along w_*.

    Patches, channels and examples are rounded to integers. Raises `ValueError` for an odd number of chains.
    """
    if chains < 2 or chains % 2:
        raise ValueError(f"chains = {chains}: must be even and at least 2")
    data_key, start_key, run_key = jax.random.split(key, 3)
    count, patches, dim, channels = (
        round(float(size)) for size in (system.n_train, system.patches, system.patch_dim, system.channels)
    )
    x = jax.random.normal(data_key, (count, patches, dim))
    posterior = PatchPosterior(x, jnp.sum(system.one_patch.label(x[:, :, 0]), axis=1) / jnp.sqrt(patches), system)
    draws = jax.random.normal(start_key, (chains, channels, dim))
    along = jnp.where(jnp.arange(channels) % 2 == 0, 1.0, -1.0) / posterior.scale
    run = sample(
        jax.tree_util.Partial(_log_density, posterior),
        draws.at[chains // 2 :, :, 0].set(along),
        run_key,
        warmup=warmup,
        samples=samples,
        leapfrog_steps=leapfrog_steps,
        observe=jax.tree_util.Partial(_record, posterior),
    )
    return _summary(system, run.observables, run.acceptance_rate)


def _log_density(posterior: PatchPosterior, u: Array) -> Array:
    return posterior(u)


def _record(posterior: PatchPosterior, u: Array) -> _Recorded:
    network, patches = posterior.system.one_patch, posterior.x.shape[1]
    w = posterior.scale * u
    rho, q = w[:, 0], jnp.sum(w**2, axis=1)
    along = overlaps(network.phi, (*network.kept, 1), jnp.min(q), jnp.max(q))
    *m, first = along(rho, q)
    (slope,) = overlaps(network.phi, (1,), jnp.min(q), jnp.max(q))(jnp.ones_like(q), q)
    features = posterior.features(u)
    mean = condition_readout(features, posterior.y[:, None], posterior.system.temperature).mean[:, 0]
    amplitude = jnp.sqrt(jnp.asarray(posterior.system.readout_variance, float) / features.shape[1])
    readout = amplitude * jnp.sum(mean.reshape(patches, -1), axis=0) / jnp.sqrt(patches)
    return _Recorded(
        output=jnp.stack([readout @ one for one in m]),
        spread=jnp.mean(rho**2) / posterior.scale**2,
        linear=jnp.mean(first**2),
        perpendicular=jnp.mean((q - rho**2) * slope**2) / (u.shape[1] - 1),
    )


def _summary(system: PatchNetwork, recorded: _Recorded, acceptance: Array) -> SampledPatches:
    network = system.one_patch
    health = estimate(jnp.concatenate([recorded.output, recorded.spread[..., None]], axis=-1))
    means = jax.tree.map(lambda values: jnp.mean(values, axis=(0, 1)), recorded)
    y = network.coefficients(network.kept)
    return SampledPatches(
        degree=jnp.asarray(network.kept, float),
        output=means.output,
        learnability=jnp.where(y == 0, jnp.nan, means.output / jnp.where(y == 0, 1.0, y)),
        total_learnability=means.output @ y / network.power,
        spread=means.spread,
        eigenvalue_ratio=means.linear / means.perpendicular,
        acceptance=jnp.mean(acceptance),
        r_hat=jnp.max(health.r_hat),
        effective_samples=jnp.min(health.ess),
        converged=jnp.all(health.reliable),
    )
