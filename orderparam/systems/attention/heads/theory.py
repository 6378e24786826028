"""Kernels of random attention with infinitely many heads, and the excess kurtosis of finitely
many."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.attention import covariance_root, differences, logit_rule, softmax_of
from orderparam.systems.attention.heads.model import RandomHeads, RandomTransformer


class AttentionKernels(Result):
    """Kernels of a random network on sequences.

    Fields:
        nngp: E f(X) f(X'), the covariance of the outputs.
        ntk: the tangent kernel, for weights of unit variance.
    """

    nngp: Float[Array, "first second"]
    ntk: Float[Array, "first second"]


class HeadKurtosis(Result):
    """Variance and excess kurtosis of the output of a layer of random heads.

    Fields:
        variance: E f(X)^2 for each sequence.
        kurtosis: excess kurtosis of f(X) for each sequence; 0 for a Gaussian.
        head_kurtosis: `kurtosis` times the number of heads.
    """

    variance: Float[Array, "sequence"]
    kurtosis: Float[Array, "sequence"]
    head_kurtosis: Float[Array, "sequence"]


@theory(differentiable=False)
def head_kernels(system: RandomHeads) -> AttentionKernels:
    r"""Kernels of one layer of attention whose outputs are averaged over the tokens.

    `nngp` and `ntk` are the means over tokens a, c of

    $$ K_{ac} = E \sum_{bd} A_{ab} K_{bd} A'_{cd}, \qquad E G_{ab} G'_{cd} = K_{ac} K_{bd} $$

    where $K = X X'^T/d$ on the right-hand sides and the average is over the random logits G of one
    head. With infinitely wide queries `nngp` therefore holds for every number of heads. For linear
    attention `nngp` is $s^2 K_{ac} |K|_F^2$, at every key width too. The tangent kernel is that of
    infinitely many heads.

    Accuracy: rounding for linear attention; about 1e-8 for two tokens with logits of standard
    deviation up to 2; a few parts in a thousand at the default points for more tokens.

    Source: Hron, Bahri, Sohl-Dickstein, Novak (2020); the terms of queries and keys in the tangent
    kernel are derived here in this form.

    >>> found = head_kernels(RandomHeads([[[1.0, 0.0], [0.0, 1.0]]], normaliser="identity"))
    >>> round(float(found.nngp[0, 0]), 12)  # K = 1/2: |K|^2 sum K/4
    0.125
    """
    kernels = system.architecture(finite=False).kernel(system.sequences)
    return AttentionKernels(nngp=kernels.nngp, ntk=kernels.ntk)


@theory(differentiable=False)
def transformer_kernels(system: RandomTransformer) -> AttentionKernels:
    """Kernels of a transformer with infinitely many heads and infinite widths.

    The covariance of all pairs of tokens is computed layer by layer: attention acts as in
    `head_kernels`, covariances of parallel branches are added, and a nonlinearity acts on each pair
    of tokens.

    Accuracy: that of `head_kernels`.

    Source: Hron, Bahri, Sohl-Dickstein, Novak (2020).

    >>> found = transformer_kernels(RandomTransformer([[[1.0, 0.0], [0.0, 1.0]]], depth=0))
    >>> round(float(found.nngp[0, 0]), 12)
    0.25
    """
    kernels = system.architecture(finite=False).kernel(system.sequences)
    return AttentionKernels(nngp=kernels.nngp, ntk=kernels.ntk)


@theory(differentiable=False)
def head_kurtosis(system: RandomHeads) -> HeadKurtosis:
    r"""Excess kurtosis of a layer of random heads, which falls as one over their number.

    Given queries and keys the output is Gaussian with the mean over heads of $k = \bar A K \bar
    A^T$ as its variance, so that

    $$ \mathrm{kurtosis} = \frac3H \left[ \frac{E k^2}{(E k)^2} - 1 \right] $$

    exactly. For linear attention $E k^2/(E k)^2 = (1 + 2/m)(1 + 2\, \mathrm{tr} K^4/(\mathrm{tr}
    K^2)^2)$ at every key width m; for softmax the average is that of infinitely wide queries.

    Accuracy: rounding for linear attention; about 1e-8 for two tokens with logits of standard
    deviation up to 2; some 1e-3 at the default points for more tokens.

    Source: derived here.

    >>> found = head_kurtosis(RandomHeads([[[1.0, 0.0], [0.0, 1.0]]], 2, 1, normaliser="identity"))
    >>> round(float(found.kurtosis[0]), 12)  # (3/2) (3 x 2 - 1)
    7.5
    """
    gram = jnp.einsum("ntc,nsc->nts", system.sequences, system.sequences)
    gram = gram / system.sequences.shape[-1]
    if system.normaliser == "identity":
        square = gram @ gram
        second = jnp.trace(square, axis1=1, axis2=2)
        ratio = jnp.sum(square**2, axis=(1, 2)) / second**2
        mean = system.scale**2 * jnp.mean(gram, axis=(1, 2)) * second
        relative = (1 + 2 / system.key_width) * (1 + 2 * ratio)
    else:
        mean, relative = jax.lax.map(lambda one: _moments(system, one), gram)
    found = 3 * (relative - 1)
    return HeadKurtosis(variance=mean, kurtosis=found / system.heads, head_kurtosis=found)


def _moments(
    system: RandomHeads, gram: Float[Array, "token token"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """E k and E k^2/(E k)^2 of a softmax head."""
    tokens = len(gram)
    if tokens == 1:
        return gram[0, 0], jnp.ones(())
    points, weights = logit_rule(tokens * (tokens - 1), system.log2_points)
    # The rows of G have the covariance K. A softmax depends only on the differences within a row,
    # and these have the covariance of the differences of tokens.
    draws = points.reshape(-1, tokens, tokens - 1)
    logits = covariance_root(gram) @ draws @ covariance_root(differences(gram))
    mean = jnp.mean(softmax_of(logits, system.scale), axis=1)
    k = jnp.sum((mean @ gram) * mean, axis=1)
    first = weights @ k
    return first, weights @ k**2 / first**2
