r"""The learning coefficient of reduced-rank regression: its closed form, and the exact running
coupling at every t.

The model is y = B A x with A (H, M) and B (N, H). Around the true map 0 with whitened inputs,
$K = |B A|^2 / 2$. With the prior of unit Gaussians the integral over B is Gaussian, and that over A
runs over the $r = \min(M, H)$ eigenvalues x of a Wishart matrix, with $a = |M - H|$:

$$ Z(t) = \mathrm{E}_A \det(1 + t A A^\top)^{-N/2} \propto \int \prod_i dx_i\, w(x_i)
   \prod_{i<j} |x_i - x_j| , \qquad w(x) = x^{(a-1)/2} e^{-x/2} (1 + t x)^{-N/2} , $$

which is the Pfaffian of $A_{ij} = \int\!\int \mathrm{sgn}(y - x)\, x^i y^j w(x) w(y)$ (de Bruijn
1955), for odd r with a border $\int x^i w$. Then $\lambda(t) = -d \ln Z / d \ln t$. The use of this
integral as a reference for samplers is derived here.
"""

import numpy as np

POINTS = 6000
_LEAST, _MOST = -60.0, 400.0  # logarithm of the smallest and of the largest eigenvalue of A A^T
_STEP = 1e-4  # step of ln t in the derivative


def aoyagi_watanabe(inputs: int, hidden: int, outputs: int, rank: int = 0) -> tuple[float, int]:
    """Learning coefficient and multiplicity of reduced-rank regression y = B A x with A (hidden,
    inputs), B (outputs, hidden), and a true map of this rank.

    Source: Aoyagi and Watanabe 2005.

    >>> aoyagi_watanabe(5, 3, 5)
    (6.5, 2)
    """
    m, h, n, r = inputs, hidden, outputs, rank
    if not 0 <= r <= min(m, h, n):
        raise ValueError(f"rank = {rank}: must be between 0 and the smallest of the three sizes")
    if m + h < n + r:
        return (h * m - h * r + n * r) / 2, 1
    if n + h < m + r:
        return (h * n - h * r + m * r) / 2, 1
    if m + n < h + r:
        return m * n / 2, 1
    whole = -((h + r) ** 2) - m**2 - n**2 + 2 * (h + r) * (m + n) + 2 * m * n
    odd = (m + h + n + r) % 2
    return (whole + odd) / 8, 1 + odd


def running_coefficient(inputs: int, hidden: int, outputs: int, t: float) -> float:
    """lambda(t) of reduced-rank regression at the true map 0 with unit Gaussian prior.

    Accuracy: 1e-6. Source: de Bruijn 1955; derived here.

    >>> round(running_coefficient(5, 3, 5, 100.0), 4)
    5.9847
    """
    if not t > 0:
        raise ValueError(f"t = {t:g}: must be > 0")
    ends = (_log_partition(inputs, hidden, outputs, t * np.exp(s * _STEP)) for s in (-1, 1))
    low, high = ends
    return float((low - high) / (2 * _STEP))


def _log_partition(inputs: int, hidden: int, outputs: int, t: float) -> float:
    rank, excess = min(inputs, hidden), abs(inputs - hidden)
    y = np.linspace(_LEAST, np.log(_MOST), POINTS)
    x = np.exp(y)
    weight = np.exp((excess + 1) / 2 * y - x / 2 - outputs / 2 * np.log1p(t * x)) * (y[1] - y[0])
    parts = x ** np.arange(rank)[:, None] * weight
    whole = parts.sum(axis=1)
    parts = parts / whole[:, None]
    below = np.cumsum(parts, axis=1) - parts / 2
    matrix = np.zeros((rank + rank % 2,) * 2)
    matrix[:rank, :rank] = (2 * below - 1) @ parts.T
    if rank % 2:
        matrix[:rank, rank], matrix[rank, :rank] = 1.0, -1.0
    return float(np.linalg.slogdet(matrix)[1] / 2 + np.log(whole).sum())
