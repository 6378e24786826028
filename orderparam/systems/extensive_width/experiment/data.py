"""A teacher network and its data set, drawn at random."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from orderparam.gaussian import Activation, hermite_coefficients
from orderparam.systems.extensive_width.model import QuadraticTeacher, Teacher

Affine = tuple[Array | float, Array | float]

TEST_POINTS = 8000  # the error of an average over them is 1.6 %


class TeacherData(NamedTuple):
    """Teacher weights, noisy training set, and a test set without noise."""

    weights: Float[Array, "feature input"]
    inputs: Float[Array, "sample input"]
    labels: Float[Array, "sample"]
    test_inputs: Float[Array, "test input"]
    test_labels: Float[Array, "test"]


def affine_part(activation: Activation) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """c_0 and c_1, the parts learned from O(d) samples."""
    c = hermite_coefficients(activation, 2, 1.0, activation.kinks)
    return c[0], c[1]


def draw(
    teacher: Teacher | QuadraticTeacher, key: PRNGKeyArray, affine: Affine = (0.0, 0.0), orthogonal: bool = True
) -> TeacherData:
    """y = sum_i v_i (sigma(z_i) - c_0 - c_1 z_i) + sqrt(Delta) noise, z_i = w_i . x / sqrt(d), with `affine` = (c_0, c_1).

    The teacher's rows are of norm sqrt(d), orthogonal where the width permits; with `orthogonal` False they are drawn from the
    prior, as they must be where the spectrum of sum_i v_i w_i w_i^T matters.
    Raises `ValueError` for an input dimension or a number of samples that is not an integer.
    """
    dim, samples, readout = teacher.size("input_dim"), teacher.size("n_train"), teacher.readout
    weight_key, input_key, noise_key, test_key = jax.random.split(key, 4)
    width = readout.shape[0]
    weights = jax.random.normal(weight_key, (width, dim))
    if orthogonal:
        rows = jnp.linalg.qr(weights.T)[0].T if width <= dim else weights
        weights = rows * jnp.sqrt(dim) / jnp.linalg.norm(rows, axis=1, keepdims=True)
    inputs = jax.random.normal(input_key, (samples, dim))
    test_inputs = jax.random.normal(test_key, (TEST_POINTS, dim))
    noise = jnp.sqrt(teacher.noise) * jax.random.normal(noise_key, (samples,))
    labels = output(teacher.activation, affine, readout, weights, inputs) + noise
    return TeacherData(weights, inputs, labels, test_inputs, output(teacher.activation, affine, readout, weights, test_inputs))


def output(
    activation: Activation,
    affine: Affine,
    readout: Float[Array, "feature"],
    weights: Float[Array, "feature input"],
    inputs: Float[Array, "sample input"],
) -> Float[Array, "sample"]:
    """sum_i v_i (sigma(z_i) - c_0 - c_1 z_i)."""
    z = inputs @ weights.T / jnp.sqrt(weights.shape[1])
    return (activation(z) - affine[0] - affine[1] * z) @ readout
