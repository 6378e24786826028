"""What theories and experiments of the room return: losses, predictions, order parameters,
similarity matrices.
"""

import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float, Int

from orderparam.core.result import Result


class Losses(Result):
    """Posterior averages <.> of the squared losses, without a factor 1/2, per example and summed
    over the outputs.

    train_error = mean_mu <|y_mu - f(x_mu)|^2> over the training set, test_error the same over the
    test set. Each is the sum of bias = mean |y - <f>|^2 and variance = mean <|f - <f>|^2>; the
    variance is that of f itself, without the noise T. accuracy: share of test points where <f> has
    the sign of y, or, with several outputs, its largest entry where y has it.
    """

    train_error: Float[Array, ""]
    train_bias: Float[Array, ""]
    train_variance: Float[Array, ""]
    test_error: Float[Array, ""]
    test_bias: Float[Array, ""]
    test_variance: Float[Array, ""]
    accuracy: Float[Array, ""]


class Prediction(Losses):
    """The losses, and what the network says: mean and variance over the posterior of every output
    at every test point.

    covariance: posterior covariance of the outputs, averaged over the test points. converged: False
    where an iteration did not reach its end, or where the numbers are none: at T = 0 with a
    singular kernel (more examples than features), which no posterior belongs to.
    """

    mean: Float[Array, "test output"]
    variance: Float[Array, "test output"]
    covariance: Float[Array, "output other_output"]
    converged: Bool[Array, ""]


class OrderParameters(Prediction):
    """The order parameters of a network of finite width, of any architecture; all the unit matrix
    at infinite width.

    order_parameters: Q, the posterior average of (1 / (N r)) sum_c v_c(i a) v_c(j b) over the
    read-out weights v of prior variance r, c the N units or channels, i and j the places whose
    features are read out separately (the patches of a convolutional or locally connected network;
    one place in a fully connected network and under average pooling), a and b outputs. In a deep
    network with a matrix for every layer. mean_scales: kappa, of the mean of a non-odd activation:
    the same average with the covariance over the units in place of the square, <v_i v_i - v_i v_j>
    for different units; Q where the mean is not treated apart.
    """

    order_parameters: Float[Array, "layer patch output other_patch other_output"]
    mean_scales: Float[Array, "layer patch output other_patch other_output"]


class RenormalisedNetwork(OrderParameters):
    """A network of finite width: Gaussian-process regression with a kernel that the training set
    has renormalised.

    action: F at the order parameters, p(Q) ~ exp(-F/2). log_evidence: log p(y). residual: largest
    derivative of F, dimensionless and per unit of the narrowest layer (with means apart: the last
    change of Q and kappa). converged: residual < 1e-9. steps: evaluations it took.
    """

    action: Float[Array, ""]
    log_evidence: Float[Array, ""]
    residual: Float[Array, ""]
    steps: Int[Array, ""]


class IntegratedNetwork(Prediction):
    """The posterior averaged over the scale of the kernel. scale: mean of p = q_1 .. q_L.
    log_evidence: log p(y).
    """

    scale: Float[Array, ""]
    log_evidence: Float[Array, ""]


class RenormalisedKernel(Result):
    """KR on the training set, of the test points against it, and of every test point with itself;
    one output.

    converged: whether the order parameters are stationary.
    """

    train: Float[Array, "train other"]
    rows: Float[Array, "test train"]
    diagonal: Float[Array, "test"]
    converged: Bool[Array, ""]


class Branches(Result):
    """The stationary points of the effective action: minima by increasing action, and the maximum
    between neighbours.

    NaN where there are fewer than three minima. barrier_order_parameters, barrier_action: where one
    minimum gives way to the next larger one, by increasing Q; the height of the barrier is the
    difference of the actions. At depth one no more than one minimum was found on real data. Deep
    networks have two at high temperature and strong signals.
    """

    order_parameters: Float[Array, "branch layer"]
    action: Float[Array, "branch"]
    residual: Float[Array, "branch"]
    barrier_order_parameters: Float[Array, "barrier layer"]
    barrier_action: Float[Array, "barrier"]
    converged: Bool[Array, ""]


class Similarity(Result):
    """Kernels of the hidden layer over the training set, K_emp(x, x') = (r/N) sum_i phi_i(x)
    phi_i(x'), r the read-out variance.

    The sum is over the features that the read-out sees: units, (patch, channel), or channels under
    average pooling. prior: its average over the prior (the kernel of infinite width). posterior:
    its average over the posterior. renormalised: KR, with which the network predicts; Q K at depth
    one. prior_alignment, posterior_alignment: y^T K y P / (|y|^2 tr K), which is 1 for the kernel 1
    and P for y y^T.
    """

    prior: Float[Array, "train other"]
    posterior: Float[Array, "train other"]
    renormalised: Float[Array, "train other"]
    prior_alignment: Float[Array, ""]
    posterior_alignment: Float[Array, ""]


class PredictedSimilarity(Similarity):
    """numerical_error: standard error of that entry of `posterior` which is integrated worst.
    converged: as in `finite_width`.
    """

    numerical_error: Float[Array, ""]
    converged: Bool[Array, ""]


def alignment(
    kernel: Float[Array, "train train"], targets: Float[Array, "train"]
) -> Float[Array, ""]:
    """y^T K y P / (|y|^2 tr K)."""
    return targets @ kernel @ targets * targets.size / (targets @ targets * jnp.trace(kernel))


def losses(
    train_bias: Float[Array, ""],
    train_variance: Float[Array, ""],
    mean: Float[Array, "test output"],
    variance: Float[Array, "test output"],
    covariance: Float[Array, "output other_output"],
    targets: Float[Array, "test output"],
) -> dict[str, Array]:
    """The fields of `Prediction` from what is known about both sets."""
    test, outputs = targets.shape
    test_bias, test_variance = jnp.sum((targets - mean) ** 2) / test, jnp.sum(variance) / test
    said, meant = (
        jnp.sign(f[:, 0]) if outputs == 1 else jnp.argmax(f, axis=1) for f in (mean, targets)
    )
    test_error = test_bias + test_variance
    return {
        "train_error": train_bias + train_variance,
        "train_bias": train_bias,
        "train_variance": train_variance,
        "test_error": test_error,
        "test_bias": test_bias,
        "test_variance": test_variance,
        "accuracy": jnp.mean(said == meant, dtype=float),
        "mean": mean,
        "variance": variance,
        "covariance": covariance,
        "converged": jnp.isfinite(test_error + train_bias + train_variance),
    }


def regression(
    kernel: Float[Array, "entry entry"],
    rows: Float[Array, "test output entry"],
    own: Float[Array, "test output output"],
    targets: Float[Array, "train output"],
    test_targets: Float[Array, "test output"],
    temperature: Float[Array, ""] | float,
) -> dict[str, Array]:
    """The fields of `Prediction` for Gaussian-process regression with noise variance T; entries are
    (example, output).

    With A = K + T and a = A^{-1} y: mean k a, covariance k_00 - k A^{-1} k^T; over the training set y - <f> = T a and the
    variance has trace T tr(K A^{-1}), K A^{-1} = 1 - T A^{-1}   (Rasmussen, Williams 2006, section 2.2).
    """
    size, examples = kernel.shape[0], targets.shape[0]
    cholesky = jnp.linalg.cholesky(kernel + temperature * jnp.eye(size))
    dual = jsl.cho_solve((cholesky, True), targets.reshape(size))
    test, outputs, _ = rows.shape
    half = jsl.solve_triangular(cholesky, rows.reshape(-1, size).T, lower=True).reshape(
        size, test, outputs
    )
    inverse_half = jsl.solve_triangular(cholesky, jnp.eye(size), lower=True)
    variance = jnp.diagonal(own, axis1=1, axis2=2) - jnp.sum(half**2, axis=0)
    return losses(
        temperature**2 * dual @ dual / examples,
        temperature * (size - temperature * jnp.sum(inverse_half**2)) / examples,
        rows @ dual,
        jnp.maximum(variance, 0.0),
        jnp.mean(own, axis=0) - jnp.einsum("xta,xtb->ab", half, half) / test,
        test_targets,
    )


def reached(residual: Float[Array, "*batch"], tolerance: float = 1e-9) -> Bool[Array, "*batch"]:
    """Whether the dimensionless gradient of the action vanishes."""
    return residual < tolerance


def log_evidence(
    action: Float[Array, ""], constants: Float[Array, ""] | float, entries: int
) -> Float[Array, ""]:
    """log p(y) = -(F - constants)/2 - (1/2) log 2 pi for each of the targets. constants: F without
    data at the prior.
    """
    return -(action - constants + entries * jnp.log(2 * jnp.pi)) / 2
