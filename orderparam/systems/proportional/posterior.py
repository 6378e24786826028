"""Posterior densities of the whitened weights of real networks, with all weights or with the
read-out integrated out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.kernels.readout import condition_readout
from orderparam.networks import Architecture, convolutional, fully_connected
from orderparam.networks.affine import Weights
from orderparam.systems.proportional.kernels import data_term
from orderparam.systems.proportional.model import (
    BayesianNetwork,
    BayesianPatchNetwork,
    FullyConnected,
    LocallyConnected,
)
from orderparam.systems.proportional.results import alignment

Hidden = Any  # whitened weights of the layers before the read-out


def architecture(system: BayesianNetwork) -> Architecture:
    """The network of a system at its finite width, without biases.

    The variances are arrays, so that a system with other variances needs no new compilation.

    Raises:
        ValueError: for a width that is not an integer.
    """
    readout = float(system.readout_variance)
    if isinstance(system, FullyConnected):
        widths = [system.with_(width=float(width)).size("width") for width in system.widths]
        variances = [float(variance) for variance in system.variances]
        found = fully_connected(
            system.depth,
            widths,
            system.activation,
            variances,
            readout_variance=readout,
            outputs=system.outputs,
        )
    else:
        assert isinstance(system, BayesianPatchNetwork)
        found = convolutional(
            1,
            system.size("channels"),
            system.mask,
            system.activation,
            strides=system.steps,
            padding="valid",
            readout="global_average" if system.pooled else "flatten",
            shared=not isinstance(system, LocallyConnected),
            weight_variance=float(system.weight_variance),
            readout_variance=readout,
            outputs=system.outputs,
        )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, found)


def deviations(whitened: Any, network: Architecture) -> Any:
    """Standard deviations of the weights in the units of the papers, which write the factor 1 /
    sqrt(fan-in) in the equations of the network and not in the prior.
    """

    def one(layer: Any, own: Any) -> Any:
        return Weights(jnp.sqrt(layer.weight_variance), None) if isinstance(own, Weights) else ()

    return tuple(one(layer, own) for layer, own in zip(network.layers.layers, whitened))


class ReadoutMoments(eqx.Module):
    """Averages over the read-out at given hidden weights, or values at given weights of all
    layers."""

    residual: Float[Array, "train output"]  # y - f
    mean: Float[Array, "test output"]
    variance: Float[Array, "test"]  # the same for every output
    train_error: Float[Array, ""]
    test_error: Float[Array, ""]
    length: Float[Array, ""]  # trace of `order`
    # v v^T / N for the read-outs of (place, output), the places slower
    order: Float[Array, "index other"]
    mean_scales: Float[Array, "index other"]  # their covariance over the units


class PosteriorProblem(eqx.Module):
    """A network with its data; images are padded with zeros. `places` is the number of places whose
    features are read out separately.
    """

    network: Architecture
    x: Float[Array, "train *input"]
    y: Float[Array, "train output"]
    test: Float[Array, "test *input"]
    test_y: Float[Array, "test output"]
    temperature: Float[Array, ""]
    places: int = eqx.field(static=True)

    @classmethod
    def of(cls, system: BayesianNetwork) -> "PosteriorProblem":
        """Posterior problem of a system: its network with its data."""
        (x, y), (test, test_y) = system.train, system.test
        if isinstance(system, BayesianPatchNetwork):
            x, test = system.padded(x), system.padded(test)
        return cls(
            architecture(system), x, y, test, test_y, jnp.asarray(system.temperature), system.places
        )

    def draw(self, key: PRNGKeyArray) -> Any:
        """Whitened weights of all layers, drawn from the prior."""
        return self.network.draw(key, self.x.shape[1:])

    def moments(
        self,
        residual: Float[Array, "train output"],
        spread: Float[Array, ""],
        mean: Float[Array, "test output"],
        variance: Float[Array, "test"],
        order: Float[Array, "index other"],
        total: Float[Array, "index other"],
    ) -> ReadoutMoments:
        """The observables of one draw.

        Args:
            spread: sum_mu Var f(x_mu), summed over the outputs.
            total: (sum_c v_c) (sum_c v_c)^T / N.
        """
        units = jax.eval_shape(self.draw, jax.random.key(0))[-1].weight.size // order.shape[0]
        train_error = (jnp.sum(residual**2) + spread) / self.y.shape[0]
        test_error = jnp.mean(
            jnp.sum((mean - self.test_y) ** 2, axis=-1) + self.y.shape[1] * variance
        )
        covariance = (units * order - total) / (units - 1)  # NaN for a single unit
        return ReadoutMoments(
            residual, mean, variance, train_error, test_error, jnp.trace(order), order, covariance
        )


class Collapsed(eqx.Module):
    r"""The posterior of the hidden layers, with the read-out integrated out.

    $$ \log p(W) = -\tfrac12 |W|^2 - \tfrac12 \log\det(T + \Phi\Phi^T)
       - \tfrac12 y^T (T + \Phi\Phi^T)^{-1} y $$

    with W whitened. With D outputs the log det is multiplied by D. `readout` has the shape of the
    read-out.
    """

    problem: PosteriorProblem
    readout: Weights  # zeros of the shape of the read-out

    @classmethod
    def of(cls, system: BayesianNetwork) -> "Collapsed":
        """The collapsed posterior of a system's network."""
        problem = PosteriorProblem.of(system)
        shapes = jax.eval_shape(problem.draw, jax.random.key(0))
        return cls(problem, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), shapes[-1]))

    def draw(self, key: PRNGKeyArray) -> Hidden:
        """Hidden weights from the prior."""
        return self.problem.draw(key)[:-1]

    def features(
        self, hidden: Hidden, x: Float[Array, "example *input"]
    ) -> Float[Array, "example feature"]:
        """The features Phi(x) with f = Phi u, u the whitened read-out."""
        return self.problem.network.features((*hidden, self.readout), x)

    def __call__(self, hidden: Hidden) -> Float[Array, ""]:
        given = self.problem
        phi = self.features(hidden, given.x)
        noisy = phi @ phi.T + given.temperature * jnp.eye(phi.shape[0])
        return -data_term(noisy, given.y) / 2 + whitened_prior(hidden)

    def moments(self, hidden: Hidden) -> ReadoutMoments:
        """Averages over the read-out at these hidden weights."""
        given = self.problem
        phi, test = self.features(hidden, given.x), self.features(hidden, given.test)
        posterior = condition_readout(phi, given.y, given.temperature)
        outputs, places = given.y.shape[1], given.places
        # Given the hidden weights the read-out is Gaussian. Its covariance Cov(u_ic, u_jd) = 1 -
        # Phi^T A^{-1} Phi is the same for every output.
        shared = posterior.half.reshape(phi.shape[0], places, -1)
        units = shared.shape[-1]
        over_units = jnp.sum(shared, axis=-1)
        own = jnp.eye(places) - jnp.einsum("mic,mjc->ij", shared, shared) / units
        total = jnp.eye(places) - over_units.T @ over_units / units
        order, total = (
            found + jnp.kron(covariance, jnp.eye(outputs))
            for found, covariance in zip(readout_products(posterior.mean, places), (own, total))
        )
        return given.moments(
            given.temperature * posterior.discrepancy,
            outputs * given.temperature * jnp.sum(posterior.half**2),  # tr Phi^T A^{-1} Phi
            test @ posterior.mean,
            posterior.variance(test),
            order,
            total,
        )

    def similarity_moments(
        self, hidden: Hidden
    ) -> tuple[Float[Array, "train train"], Float[Array, ""], Float[Array, "index other"]]:
        """The kernel Phi Phi^T, its alignment with the targets of one output, and the order
        parameters."""
        phi = self.features(hidden, self.problem.x)
        kernel = phi @ phi.T
        return kernel, alignment(kernel, self.problem.y[:, 0]), self.moments(hidden).order


class Full(eqx.Module):
    """The posterior of all weights of a network, log p(W) = -|y - f|^2 / (2T) - |W|^2 / 2 with W
    whitened.
    """

    problem: PosteriorProblem

    def __call__(self, whitened: Any) -> Float[Array, ""]:
        given = self.problem
        error = given.y - given.network.apply(whitened, given.x)
        return -jnp.sum(error**2) / (2 * given.temperature) + whitened_prior(whitened)

    def moments(self, whitened: Any) -> ReadoutMoments:
        """The observables of the network at these weights."""
        given = self.problem
        mean = given.network.apply(whitened, given.test)
        residual = given.y - given.network.apply(whitened, given.x)
        products = readout_products(whitened[-1].weight.T, given.places)
        return given.moments(residual, jnp.zeros(()), mean, jnp.zeros(mean.shape[0]), *products)


def whitened_prior(weights: Any) -> Float[Array, ""]:
    """The log density of the prior, -|u|^2 / 2."""
    return -sum((jnp.sum(leaf**2) for leaf in jax.tree.leaves(weights)), jnp.zeros(())) / 2


def readout_products(
    readout: Float[Array, "feature output"], places: int
) -> tuple[Float[Array, "index other"], Float[Array, "index other"]]:
    """The products (1/N_c) sum_c u_(i a)c u_(j b)c and (1/N_c) sum_cd u_(i a)c u_(j b)d of the
    read-out, with features numbered (place i, channel c).
    """
    by_channel = readout.reshape(places, -1, readout.shape[1])
    units = by_channel.shape[1]
    flat = jnp.moveaxis(by_channel, 1, 0).reshape(units, -1)
    over_units = jnp.sum(flat, axis=0)
    return flat.T @ flat / units, jnp.outer(over_units, over_units) / units
