r"""The learning coefficient of a product of powers: its closed form, and the exact running coupling
at every t.

With $K = \frac12 \prod_i w_i^{2 k_i}$ and the prior of unit Gaussians the partition function is a
Mellin integral of moments,

$$ Z(t) = \frac{1}{2 \pi i} \int_{c - i \infty}^{c + i \infty}
   \Gamma(z) \left(\frac{t}{2}\right)^{-z}
   \prod_i \frac{2^{-k_i z}\, \Gamma(\frac12 - k_i z)}{\sqrt \pi}\, dz ,
   \qquad 0 < c < \lambda = \min_i \frac{1}{2 k_i} , $$

so that $\lambda(t) = \langle z \rangle$ and
$d\lambda / d \ln t = \langle z \rangle^2 - \langle z^2 \rangle$ under its integrand. The pole at
$\lambda$ has as order the number m of factors with the largest power. These are the local forms of
every analytic loss after a resolution of its zeros (Watanabe 2009); the use of the integral as a
reference for samplers is derived here.
"""

from collections.abc import Sequence

import numpy as np

from orderparam.core.late import special

POINTS = 4001
_REACH, _FINEST = 60.0, 0.02  # of the imaginary part of z, and the scale of its finest spacing


def of_product(powers: Sequence[int]) -> tuple[float, int]:
    """Learning coefficient and multiplicity of half the product of the w_i^(2 k_i).

    Source: Watanabe 2009.

    >>> of_product((1, 1, 1))
    (0.5, 3)
    >>> of_product((1, 2))
    (0.25, 1)
    """
    k = _checked(powers)
    return float(1 / (2 * k.max())), int(np.sum(k == k.max()))


def running_coefficient_of_product(powers: Sequence[int], t: float) -> tuple[float, float]:
    """lambda(t) and v(t) = lambda - d lambda / d ln t of half the product of the w_i^(2 k_i).

    Accuracy: 1e-6 for t up to 1e9. Source: derived here.

    >>> u, v = running_coefficient_of_product((1, 1), 100.0)
    >>> round(u, 4), round(v, 4)
    (0.3388, 0.3145)
    """
    k = _checked(powers)
    if not t > 0:
        raise ValueError(f"t = {t:g}: must be > 0")
    scale = np.log(t / 2)
    # close to where the integrand is smallest on the real line
    real = 1 / (2 * k.max()) * (max(0.3, 1 - 1 / (scale + 2)) if scale > 0 else 0.5)
    place = np.linspace(-1, 1, POINTS) * np.arcsinh(_REACH / _FINEST)
    z = real + 1j * _FINEST * np.sinh(place)
    moments = [special.loggamma(0.5 - each * z) - each * z * np.log(2) for each in k]
    logarithm = special.loggamma(z) - z * scale + sum(moments)
    weight = np.exp(logarithm - logarithm.real.max()) * np.cosh(place)
    whole = weight.sum().real
    first, second = (float((power * weight).sum().real / whole) for power in (z, z * z))
    return first, first + second - first**2


def _checked(powers: Sequence[int]) -> np.ndarray:
    k = np.asarray(powers, float)
    if k.ndim != 1 or not len(k) or np.any(k < 1) or np.any(k % 1):
        raise ValueError(f"powers = {list(powers)}: must be whole numbers of at least 1")
    return k
