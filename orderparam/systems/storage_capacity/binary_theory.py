"""Theory of storage by binary couplings."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.gaussian.quadrature import standard_normal_rule
from orderparam.gaussian.tail import hazard, log_cdf
from orderparam.solve.root import decreasing_root
from orderparam.systems.storage_capacity.model import BinaryPatterns
from orderparam.systems.storage_capacity.theory import Number

# Krauth and Mézard's theory of the binary perceptron: the entropy of its solutions, and the
# capacity, where this entropy vanishes.

_LARGEST = 200.0  # largest conjugate qh, where 1 - q is below exp(-100)


class Solutions(Result):
    """Binary couplings that store the patterns.

    Fields:
        entropy: logarithm of the typical number of solutions, over N.
        overlap: q = J.J'/N of two random solutions.
        annealed_entropy: ln 2 + alpha ln H(kappa), which is 1/N times the logarithm of the mean
            number of solutions and an upper bound of `entropy`.
        frozen: whether the replica-symmetric entropy is negative. Then there are no solutions, and
            the state of lowest energy is frozen: replica symmetry is broken in one step, and each
            pure state is a single configuration of the couplings (Krauth, Mézard 1989).
        residual: residual of the saddle-point equations.
        converged: whether they were solved.
    """

    entropy: Float[Array, ""]
    overlap: Float[Array, ""]
    annealed_entropy: Float[Array, ""]
    frozen: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class BinaryCapacity(Result):
    """Storage capacity of a perceptron with binary couplings.

    Fields:
        capacity: alpha_c, at which the entropy of solutions vanishes.
        overlap: overlap q of two solutions at that load.
        residual: residual of the equation.
        converged: whether it was solved.
    """

    capacity: Float[Array, ""]
    overlap: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def solutions(system: BinaryPatterns) -> Solutions:
    r"""Replica-symmetric entropy and overlap of the binary couplings that store the patterns, in
    the limit of large N.

    The entropy is the saddle point over q = `overlap` and its conjugate $\hat q$ of

    $$ -\frac{\hat q (1 - q)}{2} + \int Dz\, \ln 2 \cosh(\sqrt{\hat q}\, z) + \alpha \int Dz\,
          \ln H(u), \qquad
       u = \frac{\kappa - \sqrt q\, z}{\sqrt{1 - q}} $$

    with $\alpha$ = `load`, $\kappa$ = `margin` and $H(u) = \Phi(-u)$. The equations are

    $$ q = \int Dz \tanh^2(\sqrt{\hat q}\, z), \qquad
       \hat q (1 - q) = \alpha \int Dz\, \Big( \frac{\varphi(u)}{H(u)} \Big)^2 $$

    Given $\hat q$, both q and $\alpha$ are explicit, so that $\hat q$ is the only unknown to be
    solved for.

    Accuracy: 1e-8. The entropy is exact up to the capacity. Beyond the capacity it is negative, and
    `frozen` is true.

    Source: Krauth, Mézard (1989), equations 7 to 9.

    >>> found = solutions(BinaryPatterns(load=0.5))
    >>> round(float(found.entropy), 8), round(float(found.overlap), 8)
    (0.31439007, 0.32238536)
    """

    margin, load = jnp.asarray(system.margin), jnp.asarray(system.load)

    def equation(log_conjugate: Number, args: tuple[Number, Number]) -> Number:
        load, margin = args
        return jnp.log(load) - jnp.log(_state(jnp.exp(log_conjugate), margin)[1])

    low = jnp.log(load) + 2 * jnp.log(hazard(-margin)) - 2
    root = decreasing_root(equation, low, jnp.maximum(low + 1, jnp.log(_LARGEST)), (load, margin))
    q, _, free, constraint = _state(jnp.exp(root.value), margin)
    entropy = free + load * constraint
    annealed = jnp.log(2.0) + load * log_cdf(-margin)
    return Solutions(
        entropy=entropy,
        overlap=q,
        annealed_entropy=annealed,
        frozen=entropy < 0,
        residual=root.residual,
        converged=root.converged,
    )


@theory
def binary_capacity(system: BinaryPatterns) -> BinaryCapacity:
    r"""Storage capacity of a perceptron with binary couplings, which is the load at which the
    entropy of `solutions` vanishes.

    With q and $\alpha$ as functions of the conjugate $\hat q$, the capacity $\alpha_c$ = `capacity`
    solves

    $$ -\frac{\hat q (1 - q)}{2} + \int Dz\, \ln 2 \cosh(\sqrt{\hat q}\, z) + \alpha_c \int Dz\,
          \ln H(u) = 0 $$

    in the notation of `solutions`. It is 0.8331 without a margin, a threshold that has since been
    proved (Ding, Sun 2019; Huang 2024). The system's load is not used.

    Accuracy: 1e-8.

    Source: Krauth, Mézard (1989).

    >>> round(float(binary_capacity(BinaryPatterns()).capacity), 8)
    0.8330786
    """

    def entropy(log_conjugate: Number, margin: Number) -> Number:
        _, load, free, constraint = _state(jnp.exp(log_conjugate), margin)
        return free + load * constraint

    margin = jnp.asarray(system.margin)
    root = decreasing_root(entropy, jnp.log(jnp.asarray(1e-8)), jnp.log(_LARGEST), margin)
    q, load, *_ = _state(jnp.exp(root.value), margin)
    return BinaryCapacity(
        capacity=load, overlap=q, residual=root.residual, converged=root.converged
    )


def _state(conjugate: Number, margin: Number) -> tuple[Number, Number, Number, Number]:
    """Overlap q, load alpha, entropy without patterns, and entropy that one pattern per input adds,
    at a given conjugate qh.
    """
    root = jnp.sqrt(conjugate)
    z, weight = standard_normal_rule((0.0,), refine=4)
    x = jnp.abs(root * z)
    fade = jnp.exp(-2 * x)
    q = jnp.sum(weight * jnp.tanh(x) ** 2)
    rest = jnp.sum(weight * 4 * fade / (1 + fade) ** 2)  # 1 - q
    free = -conjugate * rest / 2 + jnp.sum(weight * (x + jnp.log1p(fade)))
    z, weight = standard_normal_rule((margin / jnp.sqrt(q),))
    minus = (jnp.sqrt(q) * z - margin) / jnp.sqrt(rest)
    return (
        q,
        conjugate * rest / jnp.sum(weight * hazard(minus) ** 2),
        free,
        jnp.sum(weight * log_cdf(minus)),
    )
