"""Similarity matrices (kernels) of the hidden layer before and after learning, and a predictor that
some published codes construct from these matrices.

Let psi_i = (r / N_p)^{1/2} phi_i be the features at the places i, with means m_i and covariances
C_ij. The posterior of the hidden weights with the read-out integrated out is their prior times N(y;
0, T + K_emp), with K_emp = (1/N) sum_c sum_i psi_ci psi_ci^T. To first order in 1/N

    <K_emp> = K + (1/N) (1/2) Cov( sum_i psi_i psi_i^T ,
                                   sum_kl [ Q_kl g_k^T W g_l + 2 kappa_kl m_k^T W g_l ] ),
    g = psi - m,

with W = a a^T - A^{-1}, a = A^{-1} y, A = T + KR. The covariance is over the pre-activations of one
unit and requires the fourth moments of phi (derived for this package). With Q = kappa = 1 and KR =
K this is the strict expansion at fixed P. At P ~ N the values of Q and kappa are the order
parameters, as for Gaussian units. If the hidden units were Gaussian processes (the ansatz of
Pacelli et al. 2023 and of the codes that follow it) the covariance would be, by Wick's theorem,

    sum_ikl [ Q_kl C_ik W C_li + kappa_kl (m_i m_k^T W C_li + transpose) ]:

which omits the fourth cumulant of phi. This cumulant is of the same order and can change the sign
of an entry.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.core.needs import equal
from orderparam.core.verb import theory
from orderparam.gaussian import Activation
from orderparam.systems.proportional import deep
from orderparam.systems.proportional.deep import ONE_OUTPUT
from orderparam.systems.proportional.kernels import inverse
from orderparam.systems.proportional.model import (
    BayesianNetwork,
    BayesianPatchNetwork,
    FullyConnected,
    LocallyConnected,
)
from orderparam.systems.proportional.results import (
    PredictedSimilarity,
    Prediction,
    alignment,
    regression,
)
from orderparam.systems.proportional.theory import finite_width, kernel_at, prior_kernels

_BATCH = 2**15  # nodes of the integral that are in memory at once

Matrix = Float[Array, "train other"]
Scale = Float[Array, "place other"]


SHALLOW = ONE_OUTPUT | {"depth": equal(1, why="one hidden layer")}


class Units(eqx.Module):
    """Hidden units that read the same places i, with the pre-activations h_i(x_mu) = B z on the
    training set, z standard normal.

    `basis` is B, `root` the square root of the read-out variance divided by the number of features,
    and `pooled` whether the read-out sees the mean over these places instead of each of them.
    """

    basis: Float[Array, "place train mode"]
    activation: Activation
    root: Float[Array, ""]
    pooled: bool = eqx.field(static=True)

    @property
    def means(self) -> Float[Array, "place train"]:
        """The means m_i of the features that the read-out sees."""
        return self._means(self._covariance)

    @property
    def _covariance(self) -> Float[Array, "place other train train"]:
        return jnp.einsum("imk,jnk->ijmn", self.basis, self.basis)

    def _means(
        self, covariance: Float[Array, "place other train train"]
    ) -> Float[Array, "place train"]:
        """The means E psi_i at a given covariance of the pre-activations."""
        means = self.root * self.activation.mean(jnp.einsum("iimm->im", covariance))
        return jnp.mean(means, axis=0, keepdims=True) if self.pooled else means

    def _kernels(
        self, covariance: Float[Array, "place other train train"]
    ) -> Float[Array, "place other train train"]:
        """The kernels E psi_i psi_j^T at a given covariance of the pre-activations."""
        own = jnp.einsum("iimm->im", covariance)
        kernels = self.root**2 * self.activation.two_point(
            own[:, None, :, None], covariance, own[None, :, None, :]
        )
        return jnp.mean(kernels, axis=(0, 1), keepdims=True) if self.pooled else kernels

    def gaussian_change(self, weight: Matrix, scale: Scale, kappa: Scale) -> Matrix:
        """The change N <K_emp - K> for units that are Gaussian processes, by Wick's theorem."""
        means = self.means
        centred = self._kernels(self._covariance) - jnp.einsum("im,jn->ijmn", means, means)
        along = jnp.einsum("kl,kn,ilan->ia", kappa, means @ weight, centred)
        pulled = jnp.einsum("kl,ikam,mn->ilan", scale, centred, weight)
        return jnp.einsum("ilan,ilbn->ab", pulled, centred) + means.T @ along + along.T @ means

    def change(
        self, weight: Matrix, scale: Scale, kappa: Scale, batches: int
    ) -> Float[Array, "batch train other"]:
        """The change N <K_emp - K> of the actual units, by Monte Carlo integration over z in
        independent batches of nodes.

        The part h^T V h of the quadratic form q = sum_kl [..] that is quadratic in the
        pre-activations is integrated exactly: V = dE q/dC with C their covariance, and Cov(K_emp,
        h^T V h) is the derivative of the kernel when C changes by 2 C V C.
        """
        means, covariance = self.means, self._covariance

        def average(covariance: Float[Array, "place other train train"]) -> Float[Array, ""]:
            """The mean E q up to a constant, at the given means."""
            along = 2 * jnp.sum(((kappa - scale) @ means @ weight) * self._means(covariance))
            return jnp.einsum("kl,mn,klmn->", scale, weight, self._kernels(covariance)) + along

        slope = jax.grad(average)(covariance)
        quadratic = jnp.einsum("imk,ijmn,jnl->kl", self.basis, slope, self.basis, optimize="greedy")
        quadratic = (quadratic + quadratic.T) / 2
        turned = jnp.einsum(
            "imk,kl,jnl->ijmn", self.basis, quadratic, self.basis, optimize="greedy"
        )
        exact = jnp.einsum("iimn->mn", jax.jvp(self._kernels, (covariance,), (2 * turned,))[1])

        def batch(key: PRNGKeyArray) -> Matrix:
            z = jax.random.normal(key, (_BATCH, self.basis.shape[-1]))
            psi = self.root * self.activation(jnp.tensordot(z, self.basis, ((1,), (2,))))
            psi = jnp.mean(psi, axis=1, keepdims=True) if self.pooled else psi
            pulled = (psi - means) @ weight
            drawn = jnp.einsum("ij,zja->zia", scale, psi - means) + 2 * (kappa @ means)
            rest = jnp.einsum("zia,zia->z", drawn, pulled) - jnp.sum((z @ quadratic) * z, axis=1)
            rest -= jnp.mean(rest)
            return (
                exact + jnp.tensordot(rest[:, None, None] * psi, psi, ((0, 1), (0, 1))) / _BATCH
            ) / 2

        return jax.lax.map(batch, jax.random.split(jax.random.key(0), batches))


def _hidden_units(system: BayesianNetwork) -> Units:
    """The hidden units of a system, with a leading axis: one entry, or without weight sharing one
    for every patch.
    """
    x, root, pooled = system.train[0], jnp.sqrt(system.readout_variance), False
    if isinstance(system, BayesianPatchNetwork):
        seen = jnp.moveaxis(system.patches(x), 1, 0)
        root, pooled = (
            (root if system.pooled else root / jnp.sqrt(system.patch_count)),
            system.pooled,
        )
    else:
        seen = x[None]
    seen = jnp.sqrt(system.variances[0] / seen.shape[-1]) * seen
    groups = seen[:, None] if isinstance(system, LocallyConnected) else seen[None]
    basis = jax.lax.map(_compressed, groups)
    return Units(basis, system.activation, jnp.broadcast_to(root, basis.shape[:1]), pooled)


def _compressed(seen: Float[Array, "place train pixel"]) -> Float[Array, "place train mode"]:
    """Basis B that gives the covariances of the pre-activations with the smallest number of
    standard normal variables."""
    flat = seen.reshape(-1, seen.shape[-1])
    if flat.shape[0] >= flat.shape[1]:
        return seen
    values, vectors = jnp.linalg.eigh(flat @ flat.T)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))).reshape(*seen.shape[:2], -1)


@theory(needs=SHALLOW)
def similarity(
    system: BayesianNetwork, *, units: Literal["actual", "gaussian"] = "actual", batches: int = 16
) -> PredictedSimilarity:
    r"""Similarity matrices of the training set in the hidden layer before and after learning, to
    first order in 1/N.

    $$ \langle K_{\mathrm{emp}} \rangle = K + \frac{1}{2N} \mathrm{Cov}\Big( \sum_i \psi_i \psi_i^T,
       \sum_{kl} \big[ Q_{kl}\, g_k^T W g_l + 2 \kappa_{kl}\, m_k^T W g_l \big] \Big), \qquad
       g = \psi - m $$

    with $W = a a^T - A^{-1}$, $a = A^{-1} y$, $A = T + K^R$, $\psi_i$ the features at place i of
    means $m_i$, Q and $\kappa$ the order parameters of `finite_width`, N the `width` or `channels`,
    and the covariance over the pre-activations of one unit. `prior` is K and `posterior` the left
    side.

    Args:
        units: "actual" (default) takes the fourth moments of the activation, by Monte Carlo
            integration. "gaussian" replaces the hidden units by Gaussian processes of the same
            means and covariances, in closed form: a common approximation that is not of first order
            in 1/N.
        batches: number of batches of 32 768 nodes for "actual", the same nodes in every call.
            Default 16.

    Raises:
        ValueError: for more than one hidden layer or output.

    Accuracy: first order in 1/N; `numerical_error` is the error of the integration.

    Source: derived here; Gaussian units are those of Aiudi et al. (2025).

    >>> from orderparam.systems.proportional import FullyConnected
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> system = FullyConnected(x[:5], x[:5, 0], x[5:], x[5:, 0], width=5, temperature=0.1)
    >>> round(float(similarity(system, units="gaussian").posterior_alignment), 6)
    3.886816
    """
    found, y = finite_width(system), system.train[1][:, 0]
    shape = system.places, system.places
    scale, kappa = found.order_parameters.reshape(shape), found.mean_scales.reshape(shape)
    renormalised = kernel_at(system, found.order_parameters, found.mean_scales)[0]
    inverted = inverse(renormalised + system.temperature * jnp.eye(y.size))
    dual = inverted @ y
    # The data change the kernel through W: its first term a a^T comes from the fit, and A^{-1} from
    # the determinant.
    weight = jnp.outer(dual, dual) - inverted
    hidden = _hidden_units(system)
    # Without weight sharing every unit sees one place, and Q and kappa are diagonal in the places.
    alone = hidden.basis.shape[0] > 1
    blocks = [
        jnp.diag(matrix)[:, None, None] if alone else matrix[None] for matrix in (scale, kappa)
    ]

    def of_one(own: tuple[Units, Scale, Scale]) -> Float[Array, "batch train other"]:
        one, q, k = own
        return (
            one.gaussian_change(weight, q, k)[None]
            if units == "gaussian"
            else one.change(weight, q, k, batches)
        )

    estimates = jnp.sum(jax.lax.map(of_one, (hidden, *blocks)), axis=0)
    change = jnp.mean(estimates, axis=0)
    error = (
        jnp.zeros(())
        if units == "gaussian"
        else jnp.max(jnp.std(estimates, axis=0, ddof=1)) / np.sqrt(batches)
    )
    prior, width = prior_kernels(system)[0], system.widths[0]
    # `change` is N <K_emp - K>, so that the mean kernel changes by `change` / N.
    after = prior + change / width
    return PredictedSimilarity(
        prior=prior,
        posterior=after,
        renormalised=renormalised,
        prior_alignment=alignment(prior, y),
        posterior_alignment=alignment(after, y),
        numerical_error=error / width,
        converged=found.converged & jnp.all(jnp.isfinite(after)),
    )


@theory(needs=SHALLOW)
def kernel_corrected(system: FullyConnected) -> Prediction:
    r"""Prediction with Q times the kernel of Gaussian hidden units after learning, provided for
    comparison only.

    $$ K \rightarrow Q \big( K + K W K \big), \qquad W = \frac QN \big( a a^T - A^{-1} \big),
       \qquad A = T + Q K, \qquad a = A^{-1} y $$

    on the training set and likewise at the test points, with Q the order parameter of
    `finite_width`, N the `width` and T the `temperature`. The mean of a non-odd activation is part
    of the kernel.

    Raises:
        ValueError: for more than one hidden layer or output.

    Accuracy: published codes use this predictor, but it is not a systematic correction. For a
    linear network (digits, P = 50, N = 20, T = 0.1) it changes a test bias of 0.5388 (exact:
    0.5383) to 0.612.

    Source: the kernel of Gaussian units after learning is that of Aiudi et al. (2025); its use as a
    predictor is found in code of the literature.

    >>> from orderparam.systems.proportional import FullyConnected
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> system = FullyConnected(x[:5], x[:5, 0], x[5:], x[5:, 0], width=5, temperature=0.1)
    >>> round(float(kernel_corrected(system).test_bias), 6)
    0.0538
    """
    (_, y), (_, test_y), temperature = system.train, system.test, system.temperature
    found = finite_width(system)
    scale = found.order_parameters.reshape(())
    train, rows, diagonal = deep.prior_kernels(system)
    inverted = inverse(scale * train + temperature * jnp.eye(y.shape[0]))
    dual = inverted @ y
    weight = scale / system.widths[0] * (dual @ dual.T - inverted)
    change = (
        train @ weight @ train,
        rows @ weight @ train,
        jnp.einsum("tm,mn,tn->t", rows, weight, rows),
    )
    train, rows, diagonal = (
        scale * (before + more) for before, more in zip((train, rows, diagonal), change)
    )
    fields = regression(train, rows[:, None], diagonal[:, None, None], y, test_y, temperature)
    return Prediction(**fields | {"converged": fields["converged"] & found.converged})
