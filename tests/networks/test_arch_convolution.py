"""Convolutional, locally connected, pooled, residual and normalised networks against their
infinite-width kernels."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.networks import (
    Architecture,
    AveragePool,
    Convolution,
    Dense,
    Flatten,
    GlobalAveragePool,
    LayerNorm,
    Nonlinearity,
    Serial,
    Sum,
    UnsharedConvolution,
    convolution,
    convolutional,
    fully_connected,
    random_kernels,
)

KEY = jax.random.key(0)
IMAGES = jax.random.normal(jax.random.key(1), (3, 5, 4, 2))
SIGNALS = jax.random.normal(jax.random.key(2), (3, 6, 2))


@pytest.mark.parametrize(
    ("architecture", "networks"),
    [
        # one hidden layer: the average over random networks is exact at every number of channels
        (convolutional(1, 8, 3, "relu", shared=False, strides=2, readout="global_average",
        bias_variance=0.1, outputs=4), 300),
        (
            Architecture(
                Serial((
                    Convolution(32, (3, 2), (2, 1), bias_variance=0.1),
                    Nonlinearity("relu"),
                    AveragePool(2),
                    Sum((Serial(()), Serial((Convolution(32, 2, weight_variance=2.0), LayerNorm(),
                    Convolution(32, 1))))),
                    GlobalAveragePool(),
                    Dense(4),
                )),
                "standard",
            ),
            60,
        ),
    ],
    ids=["local-strided-pooled", "shared-strided-residual-pooled-standard"],
)  # fmt: skip
def test_random_networks_on_images_have_the_infinite_width_kernels(architecture, networks):
    measured = random_kernels(architecture, jax.random.key(7), IMAGES, networks=networks)
    theory = architecture.kernel(IMAGES)
    # else the check could not see a wrong kernel
    assert (measured.nngp_error / jnp.abs(measured.nngp).max()).max() < 0.1
    assert np.abs((measured.nngp - theory.nngp) / measured.nngp_error).max() < 4
    assert np.abs((measured.ntk - theory.ntk) / measured.ntk_error).max() < 4


def test_flattened_readout_cannot_tell_shared_weights_from_local_ones():
    options = {"weight_variance": 1.5, "bias_variance": 0.1, "strides": 2}
    shared = convolutional(2, None, 3, "relu", **options).kernel(IMAGES)
    local = convolutional(2, None, 3, "relu", shared=False, **options).kernel(IMAGES)
    for one, other in zip(jax.tree.leaves(shared), jax.tree.leaves(local)):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_constant_signals_in_a_circular_network_reduce_to_a_fully_connected_one():
    """On constant images a full-window circular filter sees only the channel vector, whatever the
    read-out."""
    vectors = jax.random.normal(KEY, (4, 3))
    constant = jnp.broadcast_to(vectors[:, None, :], (4, 6, 3))
    dense = fully_connected(2, None, "relu", 1.7, 0.2).kernel(vectors)
    for readout in ("flatten", "global_average"):
        network = convolutional(
            2,
            None,
            6,
            "relu",
            padding="circular",
            readout=readout,
            weight_variance=1.7,
            bias_variance=0.2,
        )
        kernels = network.kernel(constant)
        np.testing.assert_allclose(kernels.nngp, dense.nngp, rtol=1e-12)
        np.testing.assert_allclose(kernels.ntk, dense.ntk, rtol=1e-12)


def test_circular_pooled_network_is_invariant_to_translations():
    network = convolutional(
        1, None, 3, "erf", padding="circular", readout="global_average", bias_variance=0.1
    )
    moved = jnp.roll(IMAGES, (2, 1), axis=(1, 2))
    np.testing.assert_allclose(network.nngp(IMAGES, moved), network.nngp(IMAGES), rtol=1e-12)
    flat = convolutional(1, None, 3, "erf", padding="circular", bias_variance=0.1)
    assert jnp.abs(flat.nngp(IMAGES, moved) - flat.nngp(IMAGES)).max() > 1e-3


def test_pooling_kernels_are_positive_and_batched_by_rows():
    network = convolutional(1, None, 3, "relu", readout="global_average", weight_variance=2.0)
    doubled = jnp.concatenate([IMAGES, IMAGES[:1]])
    whole, parts = network.kernel(doubled), network.kernel(doubled, row_batch=3)
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(parts)):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    for matrix in (whole.nngp, whole.ntk):
        assert jnp.linalg.eigvalsh(matrix)[0] > -1e-9 * jnp.linalg.eigvalsh(matrix)[-1]
    np.testing.assert_allclose(jnp.diagonal(whole.nngp), whole.nngp_diagonal, rtol=0)
    np.testing.assert_allclose(network.variance(doubled), whole.nngp_diagonal, rtol=1e-13)
    gradient = jax.grad(lambda x: network.kernel(x, doubled).ntk.sum())(doubled)
    assert jnp.isfinite(gradient).all()


def test_local_kernels_are_those_of_the_patches():
    """Shallow network: K_ij = F(C_ii, C_ij, C_jj) with C the normalised inner products of patches;
    their sums are the kernels."""
    network = convolutional(
        1, None, 2, "erf", strides=2, padding="valid", weight_variance=0.7, readout_variance=1.3
    )
    pooled = convolutional(1, None, 2, "erf", strides=2, padding="valid", readout="global_average",
    weight_variance=0.7,
                           readout_variance=1.3)  # fmt: skip
    local = network.local_kernels(IMAGES, IMAGES[:2])
    assert local.shape == (4, 4, 3, 2)
    corners = list(itertools.product((0, 2), (0, 2)))
    patches = jnp.stack([IMAGES[:, i : i + 2, j : j + 2].reshape(3, 8) for i, j in corners])
    inner = 0.7 * jnp.einsum("imz,jnz->ijmn", patches, patches) / 8
    own = jnp.einsum("iimm->im", inner)
    expected = (
        2
        / jnp.pi
        * jnp.arcsin(
            2 * inner / jnp.sqrt((1 + 2 * own)[:, None, :, None] * (1 + 2 * own)[None, :, None, :])
        )
    )
    np.testing.assert_allclose(local, expected[..., :2], rtol=1e-12)
    np.testing.assert_allclose(
        network.nngp(IMAGES, IMAGES[:2]), 1.3 * jnp.einsum("iimn->mn", local) / 4, rtol=1e-12
    )
    np.testing.assert_allclose(
        pooled.nngp(IMAGES, IMAGES[:2]), 1.3 * jnp.einsum("ijmn->mn", local) / 16, rtol=1e-12
    )
    with pytest.raises(ValueError, match="Flatten or GlobalAveragePool"):
        fully_connected(1, None, "erf").local_kernels(jnp.ones((2, 3)))


@pytest.mark.parametrize(
    ("window", "strides", "padding"),
    [((2, 3), (2, 1), "circular"), (4, 3, "same"), ((2, 3), 1, "valid")],
)
def test_shared_and_local_layers_agree_when_the_filters_are_equal(window, strides, padding):
    shared = Convolution(3, window, strides, padding, bias_variance=1.0)
    local = UnsharedConvolution(3, window, strides, padding, bias_variance=1.0)
    shape = IMAGES.shape[1:]
    assert shared.output_shape(shape) == local.output_shape(shape)
    weights, same = shared.draw(KEY, shape), local.draw(KEY, shape)
    grid = local.output_shape(shape)[:-1]
    filters = weights.weight.reshape(3, 1, 1, *same.weight.shape[3:])
    same = type(same)(
        jnp.broadcast_to(filters, same.weight.shape),
        jnp.broadcast_to(weights.bias[:, None, None], (3, *grid)),
    )
    one, other = jax.jit(lambda: (shared(weights, IMAGES), local(same, IMAGES)))()
    np.testing.assert_allclose(one, other, rtol=1e-12)
    assert one.shape == (3, *shared.output_shape(shape))


@pytest.mark.parametrize(
    ("window", "strides", "padding"),
    [((2, 3), (2, 1), "circular"), (4, 3, "same"), ((2, 3), 1, "valid")],
)
def test_large_inputs_are_convolved_to_the_same(monkeypatch, window, strides, padding):
    """Inputs whose windows are too many to be copied, with the derivatives."""
    layer = Convolution(3, window, strides, padding, bias_variance=1.0)
    weights = layer.draw(KEY, IMAGES.shape[1:])

    def both():
        value, back = jax.vjp(layer, weights, IMAGES)
        return value, back(jnp.cos(value))

    copied = both()
    monkeypatch.setattr(convolution, "_LARGEST_UNFOLDED", 0)
    assert "conv_general_dilated" in str(jax.make_jaxpr(layer)(weights, IMAGES))
    convolved = both()
    for one, other in zip(jax.tree.leaves(copied), jax.tree.leaves(convolved), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_average_pool_is_a_mean_over_windows():
    pooled = AveragePool(2)((), IMAGES)
    assert pooled.shape == (3, 2, 2, 2)
    np.testing.assert_allclose(pooled[:, 1, 0], IMAGES[:, 2:4, 0:2].mean(axis=(1, 2)), rtol=1e-14)


def test_residual_blocks_add_their_covariances():
    body = Serial(
        (Dense(None, weight_variance=0.5), Nonlinearity("erf"), Dense(None, weight_variance=2.0))
    )
    x = SIGNALS[:, 0]
    first = Dense(None)
    alone = Architecture(Serial((first, body))).kernel(x)
    identity = Architecture(Serial((first,))).kernel(x)
    block = Architecture(Serial((first, Sum((Serial(()), body))))).kernel(x)
    np.testing.assert_allclose(block.nngp, identity.nngp + alone.nngp, rtol=1e-13)
    np.testing.assert_allclose(block.ntk, identity.ntk + alone.ntk, rtol=1e-13)


def test_layer_norm_puts_every_pixel_on_the_sphere():
    network = Architecture(
        Serial((Convolution(None, 3, weight_variance=3.0), LayerNorm(), Flatten(), Dense(1)))
    )
    np.testing.assert_allclose(network.kernel(SIGNALS).nngp_diagonal, 1.0, rtol=1e-11)


def test_branches_that_need_different_pixels_can_be_added():
    pooled, flat = (Serial((readout, Dense(None))) for readout in (GlobalAveragePool(), Flatten()))
    trunk = (Convolution(None, 3), Nonlinearity("relu"))
    both = Architecture(Serial((*trunk, Sum((pooled, flat))))).nngp(SIGNALS)
    parts = [Architecture(Serial((*trunk, branch))).nngp(SIGNALS) for branch in (pooled, flat)]
    np.testing.assert_allclose(both, parts[0] + parts[1], rtol=1e-13)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Convolution(8, 0), "window = 0"),
        (lambda: Convolution(8, 3, (1, 0)), "strides = 0"),
        (lambda: Convolution(8, 3, padding="circlar"), "did you mean 'circular'"),
        (lambda: Convolution(0, 3), "channels = 0"),
        (lambda: Convolution(8, 3, weight_variance=-1.0), "weight_variance = -1.0"),
        (lambda: AveragePool(-2), "window = -2"),
        (lambda: LayerNorm(-1.0), "epsilon = -1.0"),
        (lambda: Sum(()), "one or more layers"),
        (lambda: Sum((Serial(()), Nonlinearity("erf"))), "do not add up"),
        (lambda: convolutional(1, 8, 3, "erf", readout="flat"), "did you mean 'flatten'"),
        (lambda: convolutional(1, [8, 8], 3, "erf"), "channels"),
        (lambda: convolutional(1, 8, 7, "erf", padding="valid").network(KEY, (5, 4, 1)),
        "does not fit"),
        (lambda: convolutional(1, 8, (3, 3, 3), "erf").network(KEY, (5, 4, 1)), "3 entries"),
        (lambda: convolutional(1, 8, 3, "erf").network(KEY, 5), "needs a grid"),
        (lambda: convolutional(1, 8, 3, "erf").nngp(jnp.ones((2, 5))), "needs a grid"),
        (lambda: convolutional(1, None, 3, "erf").network(KEY, (5, 4, 1)), "needs a number"),
        (lambda: Architecture(Serial((Convolution(8, 3),))).network(KEY, (5, 4, 1)),
        "end with Flatten"),
        (lambda: Architecture(Serial((Convolution(8, 3),))).nngp(IMAGES), "end with Flatten"),
        (lambda: Architecture(Serial((Convolution(8, 3), Flatten(),
        Nonlinearity("erf")))).nngp(IMAGES), "not Gaussian"),
        (lambda: Architecture(Serial((Sum((Dense(3), Dense(4))),))).network(KEY, 3),
        "different shapes"),
        (lambda: Architecture(Serial((LayerNorm(), Dense(4)))).nngp(jnp.ones((2, 3))),
        "not Gaussian"),
        (lambda: Serial((3,)), "must be layers"),
    ],
)  # fmt: skip
def test_bad_layers_are_refused(build, says):
    with pytest.raises(ValueError, match=says):
        build()
