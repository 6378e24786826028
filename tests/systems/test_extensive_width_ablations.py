"""The posterior with learned read-outs and rows of known length, against integrals over a grid."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orderparam.systems.extensive_width import (
    HierarchicalTeacher,
    WeightedTeacher,
    ablated_posterior,
    posterior_hmc,
)
from orderparam.systems.extensive_width.experiment import affine_part, draw

KEY = jax.random.key(3)


def on_a_grid(teacher, readouts, normalised):
    """Mean and standard deviation of (a - v)^2 / v^2 and of w . w0 / d, for one unit and two
    inputs; of the two states (a, w) and (-a, -w) the one with a > 0."""
    constant, linear = (float(part) for part in affine_part(teacher.activation))
    data = draw(teacher, jax.random.split(KEY, 3)[0], (constant, linear))
    v, x = float(teacher.readout[0]), np.asarray(data.inputs)
    a = np.linspace(0.01, 3, 90) if readouts == "learned" else np.array([v])
    if normalised:
        angle = np.linspace(0, 2 * np.pi, 721)[:-1]
        w = 2**0.5 * np.stack([np.cos(angle), np.sin(angle)], 1)
    else:
        line = np.linspace(-5, 5, 161)
        w = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    z = w @ x.T / 2**0.5
    unit = np.tanh(2 * z) - constant - linear * z
    y = np.asarray(data.labels)
    # |y - a h|^2 = |y|^2 - 2 a h.y + a^2 |h|^2
    misfit = y @ y - 2 * a * (unit @ y)[:, None] + a**2 * (unit**2).sum(1)[:, None]
    log_p = -misfit / (2 * teacher.noise)
    if not normalised:
        log_p = log_p - (w**2).sum(1)[:, None] / 2
    if readouts == "learned":
        log_p = log_p - a**2 / (2 * v**2)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    overlap = np.broadcast_to((w @ np.asarray(data.weights[0]) / 2)[:, None], p.shape)
    away = np.broadcast_to((a - v) ** 2 / v**2, p.shape)
    means = [float((p * part).sum()) for part in (away, overlap)]
    return [
        (mean, float((p * (part - mean) ** 2).sum()) ** 0.5)
        for mean, part in zip(means, (away, overlap), strict=True)
    ]


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("readouts", ["fixed", "learned"])
def test_one_unit_against_a_grid(readouts, normalised):
    teacher = WeightedTeacher(2, jnp.array([0.8]), noise=0.1, n_train=40)
    found = ablated_posterior(
        teacher, KEY, readouts=readouts, normalised=normalised, draws=400, leapfrog_steps=10
    )
    assert bool(found.converged)
    measured = float(found.readout_error), float(found.overlap[0])
    for value, (mean, deviation) in zip(
        measured, on_a_grid(teacher, readouts, normalised), strict=True
    ):
        assert abs(value - mean) < 4 * deviation / float(found.effective_samples) ** 0.5 + 1e-9
    assert (float(found.readout_error) > 0) == (readouts == "learned")


def test_known_readouts_and_free_rows_are_the_posterior_itself():
    teacher = HierarchicalTeacher(6, 3, 0.3, 0.04, n_train=144)
    lengths = {"warmup": 100, "draws": 150, "leapfrog_steps": 10}
    one = ablated_posterior(teacher, KEY, readouts="fixed", **lengths)
    other = posterior_hmc(teacher, KEY, **lengths)
    assert bool(one.converged)
    assert bool(other.converged)
    np.testing.assert_allclose(float(one.error), float(other.error), rtol=0.1)
    np.testing.assert_allclose(one.overlap, other.overlap, atol=0.03)
