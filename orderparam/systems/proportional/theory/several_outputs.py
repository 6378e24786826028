"""Several outputs: the order parameter is a matrix over the outputs, which renormalises the shape of the kernel.

KR = Q (x) K with Q symmetric positive definite (output, output), at depth one   (Baglioni, Giambagli, Vezzani, Burioni, Rotondo,
Pacelli 2024). In the eigenbasis of K nothing larger than output x output is ever factorised.

At larger depth, with K that of infinite width, every layer has a matrix Q_l and KR = W (x) K, where at the minimum all Q_l have
the eigenvectors of W and multiply to it: of an eigenvalue w the shares are q_l = 1 + c/N_l with the same c. Per unit of the
narrowest layer, of width N, the action is tr u(W) - log det W + .., u(w) = log w + sum_l (N_l/N) (q_l - log q_l). Exact for
linear units; for others the analogue of the closure `common` (derived for this package, not in the cited papers).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.kernels.common_scale import Eigenbasis, order_parameters
from orderparam.solve.root import decreasing_root
from orderparam.systems.proportional.theory import matrix_scale
from orderparam.systems.proportional.theory.losses import PredictionOfSeveral, losses
from orderparam.systems.proportional.theory.matrix_scale import Minimum, Prior, Response, Scale, spectral


class RenormalisedOutputs(PredictionOfSeveral):
    """A network with several outputs at finite width.

    order_parameters: Q, the posterior average of v_a . v_b / (N r) over the read-out weights, r their prior variance; the unit
    matrix at infinite width. covariance: posterior covariance of the outputs, averaged over the test points.
    At depth L > 1 the matrix is W. action: N S(Q), or F. log_evidence, residual, converged: as for one output.
    """

    order_parameters: Float[Array, "output other"]
    covariance: Float[Array, "output other"]
    action: Float[Array, ""]
    log_evidence: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class Layers(Prior):
    """u(w) of layers of the given widths; u'(w) = (N + c) / (N w)."""

    widths: Float[Array, "layer"]

    def _log_share(self, eigenvalue: Float[Array, ""]) -> Float[Array, ""]:
        """log q of the narrowest layer: sum_l log(1 + (q - 1) N / N_l) = log w."""
        ratios, target = jnp.min(self.widths) / self.widths, jnp.log(eigenvalue)

        def excess(t: Float[Array, ""], args: tuple[Array, Array]) -> Float[Array, ""]:
            ratios, target = args
            return target - jnp.sum(jnp.log1p(jnp.expm1(t) * ratios))

        depth = self.widths.shape[0]
        lower, upper = jnp.minimum(target, target / depth), jnp.maximum(target, target / depth)
        return decreasing_root(excess, lower - 0.1, upper + 0.1, (ratios, target)).value

    def slope(self, scale: Scale) -> Scale:
        return spectral(lambda w: jnp.exp(jax.vmap(self._log_share)(w)) / w, scale)

    def trace(self, scale: Scale) -> Float[Array, ""]:
        eigenvalues = jnp.linalg.eigvalsh(scale)
        logarithms = jax.vmap(self._log_share)(eigenvalues)
        shares = jax.vmap(lambda t: order_parameters(t, self.widths))(logarithms)
        own = (shares - jnp.log(shares)) @ self.widths / jnp.min(self.widths)
        return jnp.sum(own + jnp.log(eigenvalues))


def solve(basis: Eigenbasis, temperature: Float[Array, ""], widths: Float[Array, "layer"]) -> Minimum:
    """The minimum of the action; each step costs O(P D^3)."""

    def respond(scale: Float[Array, "output output"]) -> Response:
        noisy = temperature * jnp.eye(scale.shape[0]) + basis.eigenvalues[:, None, None] * scale
        inverse = jnp.linalg.inv(noisy)
        dual = jnp.einsum("iab,ib->ia", inverse, basis.targets)
        log_det = jnp.sum(jnp.log(temperature + basis.eigenvalues[:, None] * jnp.linalg.eigvalsh(scale)))
        return Response(
            log_det + jnp.sum(dual * basis.targets),
            jnp.einsum("i,iab->ab", basis.eigenvalues, inverse),
            jnp.einsum("i,ia,ib->ab", basis.eigenvalues, dual, dual),
        )

    prior = Prior() if widths.shape[0] == 1 else Layers(widths)
    return matrix_scale.minimise(respond, jnp.eye(basis.targets.shape[1]), jnp.min(widths), prior)


def predict(
    basis: Eigenbasis, scale: Float[Array, "output output"], temperature: Float[Array, ""], test_targets: Array
) -> tuple[dict[str, Float[Array, "..."]], Float[Array, "output output"]]:
    """The fields of `PredictionOfSeveral`, and the mean covariance of the outputs."""
    strengths, axes = jnp.linalg.eigh(scale)
    weights = 1 / (temperature + basis.eigenvalues[:, None] * strengths)
    rotated = basis.targets @ axes
    count = basis.eigenvalues.shape[0]
    mean = (basis.rows @ (weights * rotated)) * strengths @ axes.T
    own = basis.diagonal[:, None] * strengths - strengths**2 * (basis.rows**2 @ weights)
    own = jnp.maximum(own, 0.0)
    shared = temperature * jnp.sum(basis.eigenvalues[:, None] * strengths * weights)
    covariance = (axes * jnp.mean(own, axis=0)) @ axes.T
    fields = losses(
        jnp.sum((temperature * weights * rotated) ** 2) / count, shared / count, mean, own @ (axes**2).T, test_targets
    )
    return fields, covariance
