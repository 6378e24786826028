"""Theory of deep linear networks in time: exact outputs, losses and tangent kernels."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.solve.flow import flow
from orderparam.systems.deep_linear.model import DeepModes, LinearModes, LinearNetwork

Scalar = Float[Array, ""]
PARTS = 8  # number of parts of the time between records, short enough that exponentials stay small


class ModePath(Result):
    """The modes of a linear network along its training.

    Fields:
        time: times of the records, the last is `duration`.
        output: output o_k of every mode.
        kernel: tangent kernel of every mode.
        loss: |Sigma - W_2 W_1|^2/2, including the elements between different modes.
    """

    time: Float[Array, "record"]
    output: Float[Array, "record mode"]
    kernel: Float[Array, "record mode"]
    loss: Float[Array, "record"]


class DeepModePath(Result):
    """The modes of a deep linear network along its training.

    Fields:
        time: times of the records, the last is `duration`.
        output: output o_k of every mode.
        loss: |Sigma - W_L ... W_1|^2/2, including the elements between different modes.
        converged: whether the flow was integrated to its end.
    """

    time: Float[Array, "record"]
    output: Float[Array, "record mode"]
    loss: Float[Array, "record"]
    converged: Bool[Array, ""]


class LinearPath(Result):
    """A linear network along its training.

    Fields:
        time: times of the records, the last is `duration`.
        product: product W_2 W_1 of the layers.
        loss: |Sigma - W_2 W_1|^2/2.
        imbalance: Frobenius norm of W_2^T W_2 - W_1 W_1^T - lambda 1 at the start, divided by that
            of W_2^T W_2 + W_1 W_1^T; lambda is the mean of the diagonal of W_2^T W_2 - W_1 W_1^T.
        converged: whether the theory holds for this start and was computed up to the last record.
    """

    time: Float[Array, "record"]
    product: Float[Array, "record output input"]
    loss: Float[Array, "record"]
    imbalance: Scalar
    converged: Bool[Array, ""]


@theory
def lazy_to_rich_modes(system: LinearModes) -> ModePath:
    r"""Output and tangent kernel of every mode of a linear network with one hidden layer in time.

    As long as modes do not mix, $\kappa^2 - 4 o^2 = c^2$ is conserved (`kernel_start` c), and the
    flow is

    $$ \frac{do}{dt} = (s - o) \sqrt{c^2 + 4 o^2} $$

    It leads from the exponential $o = s (1 - e^{-ct})$ of a frozen kernel at $c \gg s$ to the
    sigmoid of Saxe et al. at $c \to 0$. With $f^2 = s^2 + c^2/4$, $\tau = \tanh(ft)/f$ and the
    values $\kappa_0, o_0$ at the start,

    $$ o(t) = \frac{o_0 + \tau s \kappa_0 + \tau^2 [o_0 (s^2 - c^2/4) + s c^2/2]}
                   {\cosh^{-2}(ft) + \tau \kappa_0 + \tau^2 (c^2/2 + 2 s o_0)} $$

    `width` and `readout_share` are not used: for wide random layers the output depends only on the
    sum of both variances, with corrections of order (number of modes)/width.

    Accuracy: 1e-12.

    Source: derived here. The limit c = 0 is that of Saxe, McClelland, Ganguli (2014); the case of
    one hidden unit in each mode is that of Braun et al. (2022) and Dominé et al. (2025).

    >>> found = lazy_to_rich_modes(LinearModes([2.0], 0.0, 2.0, 0.01, records=1))
    >>> round(float(found.output[0, 0]), 9)
    1.874841114
    """
    time = times(system)
    s, c, first = system.strengths, system.kernel_start, system.start_output
    fast = jnp.sqrt(s**2 + c**2 / 4)
    phase = fast * time[:, None]
    tau = jnp.tanh(phase) / fast
    kernel = jnp.sqrt(c**2 + 4 * first**2)
    above = first + tau * s * kernel + tau**2 * (first * (s**2 - c**2 / 4) + s * c**2 / 2)
    # 1/cosh^2, computed without overflow
    decayed = jnp.exp(-2 * phase)
    rest = 4 * decayed / (1 + decayed) ** 2
    output = above / (rest + tau * kernel + tau**2 * (c**2 / 2 + 2 * s * first))
    return ModePath(
        time=time,
        output=output,
        kernel=jnp.sqrt(c**2 + 4 * output**2),
        loss=jnp.sum((s - output) ** 2, axis=1) / 2,
    )


@theory
def deep_modes(system: DeepModes) -> DeepModePath:
    r"""Output of every mode of a deep linear network whose layers start along the modes.

    $$ \frac{do_k}{dt} = L\, o_k^{2 - 2/L} (s_k - o_k), \qquad o_k(0) = \text{start\_output} $$

    with L the `depth`, solved for $\ln o_k$. `misalignment` is not used.

    Accuracy: 1e-9.

    Source: Saxe, McClelland, Ganguli (2014).

    >>> found = deep_modes(DeepModes([2.0], 0.01, 2.0, depth=3, records=2))
    >>> round(float(found.output[1, 0]), 7)
    1.0679686
    """
    s, depth, time = system.strengths, system.depth, times(system)

    def field(logarithm: Array, s: Array) -> Array:
        output = jnp.exp(logarithm)
        return depth * output ** (1 - 2 / depth) * (s - output)

    start = jnp.full(s.shape, jnp.log(system.start_output))
    solved = flow(field, start, time, s, rtol=1e-11, atol=1e-11)
    output = jnp.exp(solved.value)
    return DeepModePath(
        time=time,
        output=output,
        loss=jnp.sum((s - output) ** 2, axis=1) / 2,
        converged=solved.converged,
    )


@theory
def balanced_flow(system: LinearNetwork) -> LinearPath:
    r"""Product of the layers of a linear network in time, from a balanced start.

    With $W_2^T W_2 - W_1 W_1^T = \lambda 1$ the stacked layers $Q = (W_1^T; W_2)$ obey $dQ/dt = F Q
    - \frac12 Q Q^T Q$, so that $X = Q Q^T$ solves a matrix Riccati equation,

    $$ X(t) = e^{Ft} Q_0 \Big[1 + Q_0^T \int_0^t e^{2Fu} du\, Q_0\Big]^{-1} Q_0^T e^{Ft}, \qquad
       F = \begin{pmatrix} -\lambda/2 & \Sigma^T \\ \Sigma & \lambda/2 \end{pmatrix} $$

    and $W_2 W_1$ is the lower left block of X. The solution is computed in eight parts between
    records, by $Q \leftarrow e^{F\delta} Q R^{-1}$ where $R^T R$ is the bracket, so that nothing
    overflows. `converged` is false for a start that is not balanced (`imbalance` above 1e-9), for
    which this is not the solution, and for records so far apart that digits are lost.

    Accuracy: 1e-10.

    Source: Fukumizu (1998); Braun et al. (2022) for $\lambda = 0$; Dominé et al. (2025).

    >>> import numpy as np
    >>> start = np.eye(2)
    >>> found = balanced_flow(LinearNetwork(3 * start, start, start, 20.0, records=2))
    >>> round(float(found.product[1, 0, 0]), 9), bool(found.converged)
    (3.0, True)
    """
    units, inputs = system.first.shape
    balance, imbalance = _balance(system)
    outputs = system.target.shape[0]
    matrix = jnp.block(
        [
            [-balance / 2 * jnp.eye(inputs), system.target.T],
            [system.target, balance / 2 * jnp.eye(outputs)],
        ]
    )
    rates, modes = jnp.linalg.eigh(matrix)
    time = times(system)
    part = time[0] / PARTS
    grown = jnp.exp(rates * part)
    small = jnp.abs(rates * part) < 1e-9
    spread = jnp.where(small, part, jnp.expm1(2 * rates * part) / jnp.where(small, 1.0, 2 * rates))

    def step(q: Array, _: None) -> tuple[Array, None]:
        bracket = jnp.eye(units) + (q.T * spread) @ q
        lower = jnp.linalg.cholesky(bracket)
        q = jax.scipy.linalg.solve_triangular(lower, (grown[:, None] * q).T, lower=True).T
        return q, None

    def record(q: Array, _: None) -> tuple[Array, Array]:
        q, _ = jax.lax.scan(step, q, length=PARTS)
        stacked = modes @ q
        return q, stacked[inputs:] @ stacked[:inputs].T

    start = modes.T @ jnp.concatenate([system.first.T, system.readout])
    _, product = jax.lax.scan(record, start, length=system.records)
    short = jnp.max(jnp.abs(rates)) * part < 8  # with factors up to e^16 ten digits remain
    sound = (imbalance < 1e-9) & short & jnp.all(jnp.isfinite(product))
    return LinearPath(
        time=time,
        product=product,
        loss=_loss(system, product),
        imbalance=imbalance,
        converged=sound,
    )


@theory
def moment_flow(system: LinearNetwork) -> LinearPath:
    r"""Product of the layers of a linear network in time, from any start.

    The equations of the second moments $X = Q Q^T$ of the stacked layers $Q = (W_1^T; W_2)$ close
    at any width,

    $$ \frac{dX}{dt} = S X + X S, \qquad S = \begin{pmatrix} 0 & E^T \\ E & 0 \end{pmatrix}, \qquad
       E = \Sigma - X_{21} $$

    with $W_2 W_1 = X_{21}$. They are integrated numerically; `imbalance` is given for comparison
    only.

    Accuracy: 1e-9.

    Source: derived here; Fukumizu (1998) has the balanced case.

    >>> import numpy as np
    >>> start = np.diag([1.0, 0.5])
    >>> found = moment_flow(LinearNetwork(np.eye(2), start, 2 * start, 20.0, records=1))
    >>> np.round(np.asarray(found.product[0]), 8).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    inputs = system.first.shape[1]

    def field(x: Array, target: Array) -> Array:
        error = target - x[inputs:, :inputs]
        moved = jnp.concatenate([error.T @ x[inputs:], error @ x[:inputs]])
        return moved + moved.T

    stacked = jnp.concatenate([system.first.T, system.readout])
    time = times(system)
    solved = flow(field, stacked @ stacked.T, time, system.target, rtol=1e-11, atol=1e-11)
    product = solved.value[:, inputs:, :inputs]
    _, imbalance = _balance(system)
    return LinearPath(
        time=time,
        product=product,
        loss=_loss(system, product),
        imbalance=imbalance,
        converged=solved.converged,
    )


def times(system: LinearModes | DeepModes | LinearNetwork) -> Float[Array, "record"]:
    """Times of the records."""
    return system.duration * jnp.arange(1, system.records + 1) / system.records


def _balance(system: LinearNetwork) -> tuple[Scalar, Scalar]:
    """The numbers lambda and `imbalance` of the start."""
    gram, other = system.first @ system.first.T, system.readout.T @ system.readout
    balance = jnp.trace(other - gram) / len(gram)
    off = jnp.sum((other - gram - balance * jnp.eye(len(gram))) ** 2)
    size = jnp.sum((other + gram) ** 2)
    # The derivative of the root is set to 0 for a start that is zero, or balanced up to rounding.
    share = off / jnp.where(size > 0, size, 1.0)
    return balance, jnp.where(share > 0, jnp.sqrt(jnp.where(share > 0, share, 1.0)), 0.0)


def _loss(system: LinearNetwork, product: Array) -> Array:
    return jnp.sum((system.target - product) ** 2, axis=(1, 2)) / 2
