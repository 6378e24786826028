"""Several outputs: the order parameter is a matrix over the outputs, which renormalises the shape of the kernel.

KR = Q (x) K with Q symmetric positive definite (output, output), at depth one   (Baglioni, Giambagli, Vezzani, Burioni, Rotondo,
Pacelli 2024). In the eigenbasis of K nothing larger than output x output is ever factorised.

At larger depth, with K that of infinite width, every layer has a matrix Q_l and KR = W (x) K, where at the minimum all Q_l have
the eigenvectors of W and multiply to it: of an eigenvalue w the shares are q_l = 1 + c/N_l with the same c. Per unit of the
narrowest layer, of width N, the action is tr u(W) - log det W + .., u(w) = log w + sum_l (N_l/N) (q_l - log q_l). Exact for
linear units; for others the analogue of the closure `common` (derived for this package, not in the cited papers).

An activation with a mean m has a second matrix at depth one, KR = Q (x) (K - m m^T) + kappa (x) m m^T, as in `mean_direction`
(derived for this package too): blocks output x output for each eigenvector of K - m m^T, and one block more for the mean.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.kernels.common_scale import Eigenbasis, order_parameters
from orderparam.solve.root import decreasing_root
from orderparam.systems.proportional.theory import matrix_scale
from orderparam.systems.proportional.theory.fully_connected import log_evidence
from orderparam.systems.proportional.theory.losses import PredictionOfSeveral, losses, reached
from orderparam.systems.proportional.theory.matrix_scale import Minimum, Prior, Response, Scale, spectral
from orderparam.systems.proportional.theory.mean_direction import Centred, prior_action, stationary_matrices


class RenormalisedOutputs(PredictionOfSeveral):
    """A network with several outputs at finite width.

    order_parameters: Q, the posterior average of v_a . v_b / (N r) over the read-out weights, r their prior variance; the unit
    matrix at infinite width. mean_scales: kappa of the mean of a non-odd activation; Q where it is not apart.
    covariance: posterior covariance of the outputs, averaged over the test points.
    At depth L > 1 the matrix is W. action: N S(Q), or F. log_evidence, residual, converged: as for one output.
    """

    order_parameters: Float[Array, "output other"]
    mean_scales: Float[Array, "output other"]
    covariance: Float[Array, "output other"]
    action: Float[Array, ""]
    log_evidence: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


def renormalised(
    kernel: Eigenbasis | Centred, temperature: Float[Array, ""], widths: Float[Array, "layer"], test_targets: Array
) -> RenormalisedOutputs:
    """The network with this kernel, read-out included. `Centred`, for one hidden layer: with the mean apart."""
    if isinstance(kernel, Centred):
        scale, kappa, action, residual = solve_with_mean(kernel, temperature, widths[0])
        fields, covariance = predict_with_mean(kernel, scale, kappa, temperature, test_targets)
        (examples, outputs), constants = kernel.basis.targets.shape, jnp.zeros(())
    else:
        minimum = solve(kernel, temperature, widths)
        scale = kappa = minimum.scale
        fields, covariance = predict(kernel, scale, temperature, test_targets)
        examples, outputs = kernel.targets.shape
        action, constants, residual = jnp.min(widths) * minimum.action, widths * outputs, minimum.residual
    return RenormalisedOutputs(
        **fields,
        order_parameters=scale,
        mean_scales=kappa,
        covariance=covariance,
        action=action,
        log_evidence=log_evidence(action, constants, examples * outputs),
        residual=residual,
        converged=reached(residual),
    )


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


class _Blocks(eqx.Module):
    """A = T + Q (x) diag(k) + kappa (x) m m^T by Woodbury's formula, in the eigenbasis of K - m m^T; all arrays small in P D^2.

    inverse: (T + k_i Q)^{-1}. weighted: m_i times it. total: their sum with m_i again. core: (kappa^{-1} + total)^{-1}.
    dual: A^{-1} y.
    """

    inverse: Float[Array, "train output output"]
    weighted: Float[Array, "train output output"]
    total: Float[Array, "output output"]
    core: Float[Array, "output output"]
    dual: Float[Array, "train output"]

    @classmethod
    def of(cls, centred: Centred, scale: Scale, kappa: Scale, temperature: Float[Array, ""]) -> "_Blocks":
        basis, mean, one = centred.basis, centred.mean, jnp.eye(scale.shape[0])
        inverse = jnp.linalg.inv(temperature * one + basis.eigenvalues[:, None, None] * scale)
        weighted = mean[:, None, None] * inverse
        total = jnp.einsum("i,iab->ab", mean, weighted)
        core = jnp.linalg.solve(one + kappa @ total, kappa)
        plain = jnp.einsum("iab,ib->ia", inverse, basis.targets)
        dual = plain - jnp.einsum("iab,b->ia", weighted, core @ (mean @ plain))
        return cls(inverse, weighted, total, core, dual)

    @property
    def diagonal(self) -> Float[Array, "train output output"]:
        """Blocks of A^{-1} on its diagonal."""
        return self.inverse - self.weighted @ self.core @ self.weighted


def solve_with_mean(
    centred: Centred, temperature: Float[Array, ""], width: Float[Array, ""]
) -> tuple[Scale, Scale, Float[Array, ""], Float[Array, ""]]:
    """Q, kappa, the action F and the residual."""
    eigenvalues, mean = centred.basis.eigenvalues, centred.mean

    def respond(scale: Scale, kappa: Scale) -> tuple[Response, Scale]:
        blocks = _Blocks.of(centred, scale, kappa, temperature)
        along = mean @ blocks.dual
        response = Response(
            jnp.zeros(()),  # the action is not needed on the way
            jnp.einsum("i,iab->ab", eigenvalues, blocks.diagonal),
            jnp.einsum("i,ia,ib->ab", eigenvalues, blocks.dual, blocks.dual),
        )
        return response, blocks.total - blocks.total @ blocks.core @ blocks.total - jnp.outer(along, along)

    start = solve(centred.basis, temperature, width[None]).scale
    solved = stationary_matrices(respond, start, width)
    scale, kappa = solved.value
    blocks = _Blocks.of(centred, scale, kappa, temperature)
    log_det = jnp.linalg.slogdet(jnp.eye(scale.shape[0]) + kappa @ blocks.total)[1]
    log_det -= jnp.sum(jnp.linalg.slogdet(blocks.inverse)[1])
    action = width * prior_action(scale, kappa) + log_det + jnp.sum(blocks.dual * centred.basis.targets)
    return scale, kappa, action, solved.residual


def predict_with_mean(
    centred: Centred, scale: Scale, kappa: Scale, temperature: Float[Array, ""], test_targets: Array
) -> tuple[dict[str, Float[Array, "..."]], Float[Array, "output output"]]:
    """As `predict`, with the mean apart."""
    basis, mean, test_mean = centred.basis, centred.mean, centred.test_mean
    blocks = _Blocks.of(centred, scale, kappa, temperature)
    count, outputs = basis.targets.shape
    found = basis.rows @ blocks.dual @ scale + jnp.outer(test_mean, kappa @ (mean @ blocks.dual))
    # Every test point against the training set is c_i = Q r_i + kappa m m_i; explained is c A^{-1} c^T.
    square, inner = (jnp.einsum("ti,iab->tab", x, y) for x, y in ((basis.rows**2, blocks.inverse), (basis.rows, blocks.weighted)))
    own = test_mean[:, None, None]
    cross = own * (scale @ inner @ kappa)
    along = scale @ inner + own * (kappa @ blocks.total)
    explained = scale @ square @ scale + cross + jnp.swapaxes(cross, 1, 2) + own**2 * (kappa @ blocks.total @ kappa)
    explained -= along @ blocks.core @ jnp.swapaxes(along, 1, 2)
    covariance = basis.diagonal[:, None, None] * scale + own**2 * kappa - explained
    trace = jnp.einsum("iaa->", blocks.diagonal)
    fields = losses(
        temperature**2 * jnp.sum(blocks.dual**2) / count,
        temperature * (count * outputs - temperature * trace) / count,
        found,
        jnp.maximum(jnp.diagonal(covariance, axis1=1, axis2=2), 0.0),
        test_targets,
    )
    return fields, jnp.mean(covariance, axis=0)
