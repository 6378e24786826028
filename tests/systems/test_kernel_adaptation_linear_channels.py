"""Networks of linear channels sampled through the Gram matrix of their weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from orderparam.systems.kernel_adaptation import (
    PatchNetwork,
    hermite_target,
    sampled_linear_patches,
    sampled_patches,
)
from orderparam.systems.kernel_adaptation.patches.linear_channels import TriangularPosterior

LINEAR = PatchNetwork(3, 2, 7, 6, 0.1, hermite_target({1: 1.0}), 0.3, 1.3, activation="linear")


def test_the_density_is_the_evidence_times_wisharts():
    """Against the density of U^T U and the change of variables from it to the triangle."""
    random = np.random.default_rng(0)
    x, y = random.standard_normal((6, 2, 3)), random.standard_normal(6)
    posterior = TriangularPosterior(LINEAR.hidden, jnp.asarray(x), jnp.asarray(y))

    def exact(entries):
        triangle = np.asarray(posterior.triangle(jnp.asarray(entries)))
        gram, diagonal = triangle @ triangle.T, np.diagonal(triangle)
        # d(L L^T)/dL = 2^S prod L_ii^(S - i), i from 0; d L_ii / d z_i is proportional to L_ii
        jacobian = np.sum((np.arange(3, 0, -1) + 1) * np.log(diagonal))
        kernel = 0.3 * 1.3 / (2 * 7 * 3) * np.einsum("mia,ab,nib->mn", x, gram, x)
        fit = stats.multivariate_normal(cov=kernel + 0.1 * np.eye(6)).logpdf(y)
        free = np.sum(np.triu(entries, 1) ** 2) / 2
        return stats.wishart(7, np.eye(3)).logpdf(gram) + jacobian + fit - free

    one, other = random.standard_normal((2, 3, 3))
    np.testing.assert_allclose(
        posterior(jnp.asarray(one)) - posterior(jnp.asarray(other)),
        exact(one) - exact(other),
        rtol=1e-10,
    )


def test_it_agrees_with_the_network_of_all_channels():
    """On the same training sets; differences are those of the chains."""
    system = LINEAR.with_(channels=20, temperature=0.02, n_train=8)
    runs = [
        [
            sampled(system, key, warmup=150, samples=600)
            for sampled in (sampled_linear_patches, sampled_patches)
        ]
        for key in jax.random.split(jax.random.key(0), 3)
    ]
    for name in ("output", "spread", "eigenvalue_ratio"):
        found, other = np.asarray(
            [[np.ravel(getattr(run, name))[0] for run in pair] for pair in runs]
        ).T
        np.testing.assert_allclose(found, other, rtol=0.05)
    assert (other > 1.3).all()  # the ratio of eigenvalues would be 1 without data


def test_it_refuses_what_it_is_not_for():
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="activation = 'erf': must be 'linear' here"):
        sampled_linear_patches(PatchNetwork(3, 2, 7, 6, 0.1, hermite_target({1: 1.0})), key)
    with pytest.raises(ValueError, match="channels = 2"):
        sampled_linear_patches(LINEAR.with_(channels=2), key)
