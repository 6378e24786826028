"""Lines to infinite size."""

import matplotlib.pyplot as plt
import numpy as np

from orderparam.plotting.extrapolation import draw_ratios, line_at_infinity


def test_the_line_at_infinity_weighs_values_by_their_errors():
    x = np.array([0.1, 0.2, 0.4])
    error = np.array([0.01, 0.02, 0.05])
    np.testing.assert_allclose(line_at_infinity(x, 2 - 3 * x, error)[::2], [2.0, -3.0])
    noise = error * np.random.default_rng(0).normal(size=(4000, 3))
    limits = [line_at_infinity(x, 2 - 3 * x + one, error) for one in noise]
    scatter = np.std([limit for limit, _, _ in limits])
    np.testing.assert_allclose(scatter, limits[0][1], rtol=0.05)


def test_ratios_are_drawn_with_their_limits():
    figure, axes = plt.subplots()
    size = np.array([10.0, 20.0, 40.0])
    draw_ratios(axes, {"n = 4": (size, 1 + 2 / size, 0.01 * np.ones(3))}, "ratio")
    (text,) = axes.texts
    assert text.get_text().startswith("n = 4: 1.000 ± ")
    assert axes.get_ylabel() == "ratio"
    plt.close(figure)
