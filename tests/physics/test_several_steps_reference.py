"""Several giant steps against independent numbers: tensor Gauss-Hermite with 60 x 120 nodes for
fresh batches, 2000-node Gauss-Legendre for the batch used twice, in NumPy. sigma' is the normal
distribution function, sigma(z) = z Phi(z) + phi(z)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import norm

from orderparam.systems.several_steps import SeveralSteps, fresh_batches, reused_batch


def smooth(z):
    return z * norm.cdf(z) + norm.pdf(z)


def arrays(system):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), system)


FRESH = [  # target, sample ratio, step: overlaps after each step, |w|^2 - |M|^2
    (
        "z1/3 + 2*z1*z2/3",
        4.0,
        3.0,
        [[0.5, 0.0], [1.0, 0.24430126], [1.57327396, 0.64012799], [2.19660023, 1.10999181]],
        [1.416666667, 1.881399090, 2.344408950, 2.726014247],
    ),
    (
        "z1 + z1*z2 + z1*z2*z3",  # without a bias the third direction stays hidden
        8.0,
        2.0,
        [
            [1.0, 0.0, 0.0],
            [2.0, 0.42648724, 0.0],
            [3.05694852, 1.00229731, 0.0],
            [4.12838039, 1.60652185, 0.0],
        ],
        [1.5, 2.120628843, 2.698381096, 3.205272540],
    ),
]


@pytest.mark.parametrize(("target", "ratio", "step", "overlap", "orthogonal"), FRESH)
def test_overlaps_with_fresh_batches(target, ratio, step, overlap, orthogonal):
    run = eqx.filter_jit(lambda system: fresh_batches(system))
    path = run(arrays(SeveralSteps(ratio, step, target=target, activation=smooth)))
    np.testing.assert_allclose(path.overlap[1:], overlap, atol=2e-8)
    np.testing.assert_allclose(path.orthogonal[1:], orthogonal, atol=2e-9)
    # A negative read-out mirrors the directions of odd order.
    mirrored = run(arrays(SeveralSteps(ratio, -step, target=target, activation=smooth)))
    np.testing.assert_allclose(mirrored.overlap[:, 0], -path.overlap[:, 0], atol=1e-12)
    np.testing.assert_allclose(mirrored.overlap[:, 1], path.overlap[:, 1], atol=1e-12)


def test_overlap_when_a_batch_is_used_twice():
    system = arrays(SeveralSteps(1.0, 2.0, target="He3(z)/sqrt(6)", activation=smooth))
    cases = jnp.asarray([(2.0, 4.0), (4.0, 10.0)])
    found = jax.lax.map(
        lambda c: reused_batch(system.with_(sample_ratio=c[0], step=c[1])).overlap[:, 0], cases
    )
    np.testing.assert_allclose(found[:, 2], [-0.04889427130, -0.08978394124], atol=2e-10)
    np.testing.assert_array_equal(found[:, 1], 0.0)
