"""State evolution of hinge and logistic losses for labels that are signs of a Gaussian teacher.

Along decreasing ridges each iteration starts at the solution before; per pair of label and field
the two labels tell the same.
"""

import math

import numpy as np
from scipy.special import expit, ndtr

TOLERANCE, MAX_STEPS = 1e-12, 5000
REACH = 9.0


def logistic(ratio: float, ridges: np.ndarray, nodes: int = 80) -> np.ndarray:
    """m, q and V at each ridge: all ridges are iterated at once, those that ended left out."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    z, weight = REACH * x, REACH * w * np.exp(-((REACH * x) ** 2) / 2) / np.sqrt(2 * np.pi)
    state = np.tile([0.3, 1.0, 1.0], (len(ridges), 1))
    active = np.arange(len(ridges))
    for _ in range(MAX_STEPS):
        m, q, response = (part[:, None] for part in state[active].T)
        u = np.sqrt(q) * z
        steep = m / np.sqrt(q)
        rest = np.sqrt(1 - steep**2)
        t = _margin(u, response)
        g = expit(-t)
        bend = g * (1 - g)
        seen = 2 * weight * ndtr(steep / rest * z)
        change = 2 * weight * np.exp(-((steep / rest * z) ** 2) / 2) / np.sqrt(2 * np.pi) / rest
        power = ratio * np.sum(seen * g**2, axis=1)
        stiffness = ratio * np.sum(seen * bend / (1 + response * bend), axis=1)
        alignment = ratio * np.sum(change * g, axis=1)
        new = _weights(alignment, power, stiffness, ridges[active])
        moved = np.max(np.abs(np.log(new / state[active])), axis=1)
        state[active] = new
        active = active[moved > TOLERANCE]
        if not len(active):
            break
    return state


def _margin(u: np.ndarray, response: np.ndarray) -> np.ndarray:
    """t = u + V / (1 + exp(t)), by Newton's method from below, of the mirror image where t < 0."""
    positive = u > -response / 2
    centre = np.where(positive, u, -u - response)
    log_z = np.log(response / 2) - centre
    t = np.maximum(centre + np.where(log_z > 1, log_z - np.log(np.maximum(log_z, 1.0)), 0.0), 0.0)
    for _ in range(5):
        tail = expit(-t)
        t = t - (t - centre - response * tail) / (1 + response * tail * (1 - tail))
    return np.where(positive, t, -t)


def _weights(
    alignment: np.ndarray, power: np.ndarray, stiffness: np.ndarray, ridge: np.ndarray
) -> np.ndarray:
    whole = stiffness + ridge
    return np.stack([alignment / whole, (alignment**2 + power) / whole**2, 1 / whole], axis=-1)


def _hinge_loop(ratio, ridges, x, w, found):  # type: ignore[no-untyped-def]
    m, q, v = 0.3, 1.0, 1.0
    for i in range(len(ridges)):
        for _ in range(5000):
            root = math.sqrt(q)
            steep = m / root
            rest = math.sqrt(1 - steep * steep)
            k = steep / rest / math.sqrt(2.0)
            low, top = (1 - v) / root, min(1 / root, 9.0)
            low = min(max(low, -9.0), 9.0)
            power = stiffness = alignment = 0.0
            for part in range(2):
                a = -9.0 if part == 0 else low
                b = low if part == 0 else top
                half = (b - a) / 2
                for j in range(len(x)):
                    z = a + half * (1 + x[j])
                    weight = 2 * half * w[j] * math.exp(-z * z / 2) * 0.3989422804014327
                    evidence = 0.5 * math.erfc(-k * z)
                    change = math.exp(-k * k * z * z) * 0.3989422804014327 / rest
                    g = 1.0 if part == 0 else (1 - root * z) / v
                    power += weight * evidence * g * g
                    alignment += weight * change * g
                    if part == 1:
                        stiffness += weight * evidence / v
            whole = ratio * stiffness + ridges[i]
            mh, qh = ratio * alignment, ratio * power
            m_new, q_new, v_new = mh / whole, (mh * mh + qh) / (whole * whole), 1 / whole
            # the same damping as a plain iteration needs here
            m_new, q_new, v_new = (
                0.2 * m + 0.8 * m_new,
                0.2 * q + 0.8 * q_new,
                0.2 * v + 0.8 * v_new,
            )
            moved = max(abs(m_new / m - 1), abs(q_new / q - 1), abs(v_new / v - 1))
            m, q, v = m_new, q_new, v_new
            if moved < 1e-12:
                break
        found[i, 0], found[i, 1], found[i, 2] = m, q, v


def compiled_hinge(nodes: int = 40):  # type: ignore[no-untyped-def]
    """A function of the ratio and of decreasing ridges that returns m, q and V at each."""
    from numba import njit

    x, w = np.polynomial.legendre.leggauss(nodes)
    loop = njit(fastmath=True)(_hinge_loop)

    def hinge(ratio: float, ridges: np.ndarray) -> np.ndarray:
        found = np.empty((len(ridges), 3))
        loop(ratio, ridges, x, w, found)
        return found

    return hinge
