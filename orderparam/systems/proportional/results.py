"""The results of theories and experiments of this topic: losses, predictions, order parameters, and
similarity matrices.
"""

import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Bool, Float, Int

from orderparam.core.result import Result


class Losses(Result):
    """Posterior averages <.> of the squared losses, without a factor 1/2, averaged over examples
    and summed over the outputs.

    Fields:
        train_error: mean of <|y - f|^2> over the training set, the sum of bias and variance.
        train_bias: mean of |y - <f>|^2 over the training set.
        train_variance: mean of <|f - <f>|^2> over the training set: the variance of f itself,
            without the noise T.
        test_error: mean of <|y - f|^2> over the test set, the sum of bias and variance: the mean
            error of one network from the posterior.
        test_bias: mean of |y - <f>|^2 over the test set: the error of the average network.
        test_variance: mean of <|f - <f>|^2> over the test set.
        accuracy: fraction of test points where <f> has the sign of y or, with several outputs,
            where the largest entry of <f> is that of y.
    """

    train_error: Float[Array, ""]
    train_bias: Float[Array, ""]
    train_variance: Float[Array, ""]
    test_error: Float[Array, ""]
    test_bias: Float[Array, ""]
    test_variance: Float[Array, ""]
    accuracy: Float[Array, ""]


class Prediction(Losses):
    """The losses, and mean and variance of the outputs over the posterior.

    Fields:
        mean: posterior mean of every output at every test point.
        variance: posterior variance of every output at every test point.
        covariance: posterior covariance of the outputs, averaged over the test points.
        converged: False if an iteration did not converge, or if the numbers are not finite: at T =
            0 with a singular kernel (more examples than features) there is no posterior.
    """

    mean: Float[Array, "test output"]
    variance: Float[Array, "test output"]
    covariance: Float[Array, "output other_output"]
    converged: Bool[Array, ""]


class OrderParameters(Prediction):
    """A prediction with the order parameters of a network of finite width, which are unit matrices
    at infinite width.

    Fields:
        order_parameters: Q, the posterior average of (1 / (N r)) sum_c v_c(i a) v_c(j b) over the
            read-out weights v of prior variance r, with c the N units or channels, i and j the
            places whose features are read out separately (the patches of a convolutional or locally
            connected network; one place in a fully connected network and under average pooling), a
            and b outputs. In a deep network there is a matrix for every layer.
        mean_scales: kappa, the order parameter of the mean of a non-odd activation. It is defined
            as Q is, with the covariance over the units, <v_c v_c - v_c v_c'> for different units c
            and c', in place of the square. If the mean has no order parameter of its own, kappa
            equals Q.
    """

    order_parameters: Float[Array, "layer patch output other_patch other_output"]
    mean_scales: Float[Array, "layer patch output other_patch other_output"]


class RenormalisedNetwork(OrderParameters):
    """A prediction by Gaussian-process regression with a kernel that the training set has
    renormalised.

    Fields:
        action: F at the order parameters, p(Q) ~ exp(-F/2).
        log_evidence: log evidence log p(y).
        residual: largest dimensionless derivative of F per unit of the narrowest layer (if means
            have order parameters of their own, the last change of Q and kappa).
        converged: whether the residual is below 1e-9.
        steps: number of evaluations.
    """

    action: Float[Array, ""]
    log_evidence: Float[Array, ""]
    residual: Float[Array, ""]
    steps: Int[Array, ""]


class IntegratedNetwork(Prediction):
    """A prediction from the posterior averaged over the scale of the kernel.

    Fields:
        scale: posterior mean of p = q_1 .. q_L.
        log_evidence: log evidence log p(y).
    """

    scale: Float[Array, ""]
    log_evidence: Float[Array, ""]


class RenormalisedKernel(Result):
    """The renormalised kernel KR of a network with one output.

    Fields:
        train: the kernel on the training set.
        rows: the kernel between test and training points.
        diagonal: the kernel of every test point with itself.
        converged: whether the order parameters are stationary.
    """

    train: Float[Array, "train other"]
    rows: Float[Array, "test train"]
    diagonal: Float[Array, "test"]
    converged: Bool[Array, ""]


class Branches(Result):
    """The stationary points of the effective action: its minima in order of increasing action, and
    the maxima between neighbouring minima.

    There is room for three minima; the entries of missing minima are NaN. At depth one no more than
    one minimum was found on real data. Deep networks have two minima at high temperature and with
    strong signals.

    Fields:
        order_parameters: Q_l of each minimum.
        action: F of each minimum.
        residual: dimensionless gradient of F at each minimum.
        barrier_order_parameters: Q_l at the maximum between a minimum and the minimum with the next
            larger Q, in order of increasing Q.
        barrier_action: F at these maxima; the height of a barrier is the difference of two actions.
        converged: whether all points that were found are stationary.
    """

    order_parameters: Float[Array, "branch layer"]
    action: Float[Array, "branch"]
    residual: Float[Array, "branch"]
    barrier_order_parameters: Float[Array, "barrier layer"]
    barrier_action: Float[Array, "barrier"]
    converged: Bool[Array, ""]


class Similarity(Result):
    """Kernels of the hidden layer over the training set, K_emp(x, x') = (r/N) sum_i phi_i(x)
    phi_i(x') with r the read-out variance.

    The sum is over the features that the read-out sees: units, (patch, channel), or channels under
    average pooling. The alignment y^T K y P / (|y|^2 tr K) is 1 for the kernel 1 and P for y y^T.

    Fields:
        prior: average of K_emp over the prior (the kernel of infinite width).
        posterior: average of K_emp over the posterior.
        renormalised: KR, with which the network predicts; Q K at depth one.
        prior_alignment: alignment of `prior` with the targets.
        posterior_alignment: alignment of `posterior` with the targets.
    """

    prior: Float[Array, "train other"]
    posterior: Float[Array, "train other"]
    renormalised: Float[Array, "train other"]
    prior_alignment: Float[Array, ""]
    posterior_alignment: Float[Array, ""]


class PredictedSimilarity(Similarity):
    """Kernels of the hidden layer as a theory predicts them.

    Fields:
        numerical_error: largest standard error of an entry of `posterior`, from the integration.
        converged: whether the order parameters of `finite_width` converged.
    """

    numerical_error: Float[Array, ""]
    converged: Bool[Array, ""]


def alignment(
    kernel: Float[Array, "train train"], targets: Float[Array, "train"]
) -> Float[Array, ""]:
    """The alignment y^T K y P / (|y|^2 tr K) of a kernel with the targets."""
    return targets @ kernel @ targets * targets.size / (targets @ targets * jnp.trace(kernel))


def losses(
    train_bias: Float[Array, ""],
    train_variance: Float[Array, ""],
    mean: Float[Array, "test output"],
    variance: Float[Array, "test output"],
    covariance: Float[Array, "output other_output"],
    targets: Float[Array, "test output"],
) -> dict[str, Array]:
    """The fields of `Prediction` from bias and variance on the training set and the prediction at
    the test points.
    """
    test, outputs = targets.shape
    test_bias, test_variance = jnp.sum((targets - mean) ** 2) / test, jnp.sum(variance) / test
    predicted_class, true_class = (
        jnp.sign(f[:, 0]) if outputs == 1 else jnp.argmax(f, axis=1) for f in (mean, targets)
    )
    # The mean error of one network is the error of the average network plus the posterior variance.
    test_error = test_bias + test_variance
    return {
        "train_error": train_bias + train_variance,
        "train_bias": train_bias,
        "train_variance": train_variance,
        "test_error": test_error,
        "test_bias": test_bias,
        "test_variance": test_variance,
        "accuracy": jnp.mean(predicted_class == true_class, dtype=float),
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

    With A = K + T and a = A^{-1} y: mean k a, covariance k_00 - k A^{-1} k^T; over the training set
    y - <f> = T a and the variance has trace T tr(K A^{-1}), K A^{-1} = 1 - T A^{-1}
    (Rasmussen, Williams 2006, section 2.2).
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
    """True if the dimensionless gradient of the action vanishes."""
    return residual < tolerance


def log_evidence(
    action: Float[Array, ""], constants: Float[Array, ""] | float, entries: int
) -> Float[Array, ""]:
    """The log evidence log p(y) = -(F - constants)/2 minus (1/2) log 2 pi for each of the targets.

    Args:
        constants: F at the prior without data.
    """
    return -(action - constants + entries * jnp.log(2 * jnp.pi)) / 2
