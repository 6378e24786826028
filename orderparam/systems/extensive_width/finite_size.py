"""Free energies of the states with and without the strongest feature at a finite number of inputs,
where data sets differ from one another."""

from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.interpolate import RectBivariateSpline, make_interp_spline
from scipy.ndimage import map_coordinates
from scipy.special import logsumexp

from orderparam.core.needs import between
from orderparam.core.result import Result, with_errors
from orderparam.core.verb import theory
from orderparam.gaussian import Activation
from orderparam.systems.extensive_width.channel import channel
from orderparam.systems.extensive_width.experiment import affine_part
from orderparam.systems.extensive_width.model import Teacher
from orderparam.systems.extensive_width.selection import middle

# A student is held at the overlap m of its strongest feature with that of the teacher. The mean of
# its free energy over data sets is d V(m). For n/d between 2 and 4, d V(m) varies with m by about
# one nat only, which is less than the differences between data sets, of order sqrt(n). A data set
# selects the state in which its own free energy happens to be lower. The state with the wider range
# of m gains from these differences.
#
# The free energy of one data set is d V(m) - sum_mu (l_mu(m) - <l(m)>), l(m) = ln p(y | omega_m),
# with omega_m the part of the teacher's field that a student of overlap m determines. The omega_m
# of one sample are taken as a martingale in m, which starts at 0 and ends at the teacher's field,
# as if a student of smaller overlap had seen less of the same data. The fields of different samples
# are taken as independent.

_OVERLAPS = 65  # overlaps sin^2 of equidistant angles
_FIELDS = np.linspace(-6.0, 6.0, 81)  # fields omega in units of their standard deviation
_HIDDEN = np.linspace(-6.0, 6.0, 241)  # the part of the field that omega leaves undetermined
_LABELS_PER_WIDTH = 5  # labels of the table within a standard deviation of the noise
_LARGEST = 0.9995  # largest overlap of the tables
_SELF_OVERLAPS = 400
_MOST_WIDTHS = 200  # largest range of labels over the noise: the table takes half a gigabyte
_MOST_EXAMPLES, _TOGETHER = 50_000_000, 5_000_000  # of all data sets, and of those drawn at once
_MOST_SETS = 100_000
_FINE = _LARGEST * np.linspace(-1.0, 1.0, 1000)  # overlaps at which the integrand is evaluated


class FluctuatingStates(Result):
    """The states with and without the strongest feature, averaged over data sets of finite size.

    Fields:
        free_energy_difference, free_energy_difference_error: mean over data sets of the free energy
            -ln Z of the state in which the strongest feature is learned minus that of the state in
            which it is not, in nats, and its standard error.
        spread: standard deviation of the free-energy difference over data sets.
        preferred: fraction of data sets in which the learned state has the lower free energy.
        converged: whether the overlap of the learned state is below 0.9995, the largest one of the
            tables.
    """

    free_energy_difference: Float[Array, ""]
    free_energy_difference_error: Float[Array, ""]
    spread: Float[Array, ""]
    preferred: Float[Array, ""]
    converged: Bool[Array, ""]


_SETS = between(2, _MOST_SETS, why="the free energies of each at 1000 overlaps are held in memory")


@theory(traced=False, needs={"data_sets": _SETS})
def fluctuating_states(teacher: Teacher, *, data_sets: int = 1000) -> FluctuatingStates:
    r"""Free energy of the state in which the strongest feature is learned, minus that of the state
    in which it is not, averaged over data sets of finite size.

    $$ F_1 - F_0 = -\langle \ln \frac{\int_{q_\sigma/2}^1 e^{-\Phi(m)}\, dm}
       {\int_{-1}^{q_\sigma/2} e^{-\Phi(m)}\, dm} \rangle , \qquad
       \Phi(m) = d\, V(m) - \sum_\mu \big( \ell_\mu(m) - \langle \ell(m) \rangle \big) $$

    $$ V(m) = \max_q \Big[ -\frac12 \ln(1 - q) - \frac{q - m^2}{2 (1 - q)}
       - \frac nd \langle \ln p_q(y | \omega) \rangle_m \Big] , \qquad
       \ell(m) = \ln p_m(y | \omega_m) $$

    V is the free energy of a student that is held at the overlap m with the teacher's strongest
    feature, q its overlap with another such student, and $p_q(y | \omega)$ the density of a label
    where a variance q of the field is known. The noise of a label is here that of the teacher plus
    the other features, which act as Gaussian noise of variance $g(1) \sum_{i > 1} v_i^2$. The
    $\omega_m$ of one sample, of variance m, are a martingale that ends at the teacher's field; data
    sets are drawn from it.

    Args:
        data_sets: number of data sets, from 2 to 100,000. Default 1000.

    Raises:
        ValueError: for other numbers of data sets, an n_train below 1, more than 5e7 examples in
            all data sets, and labels that spread over more than 200 standard deviations of the
            noise, which includes the noise of the other features.

    Accuracy: fluctuations of order sqrt(n) are kept, terms of order one are not; the samples'
    contributions are assumed independent. The integral over m is accurate to 0.02.

    Source: derived here; V is the potential of Franz, Parisi (1995).

    >>> from orderparam.systems.extensive_width import HierarchicalTeacher
    >>> teacher = HierarchicalTeacher(16, 8, decay=1.0, noise=0.04, n_train=24)
    >>> found = fluctuating_states(teacher, data_sets=50)
    >>> bool(0 < found.free_energy_difference < 3)
    True
    """
    dim, samples = float(teacher.input_dim), round(float(teacher.n_train))
    if not 1 <= samples <= _MOST_EXAMPLES / data_sets:
        most = _MOST_EXAMPLES // data_sets
        raise ValueError(
            f"n_train = {float(teacher.n_train):g}: must be at least 1 and, with data_sets = "
            f"{data_sets:g}, at most {most}, because the examples of all data sets are drawn"
        )
    power = np.asarray(teacher.readout, float) ** 2
    rest = float(channel(teacher.activation).total) * (power.sum() - power.max())
    tables = _tables(teacher.activation, float(power.max()) ** 0.5, float(teacher.noise) + rest)
    mean = dim * _potential(tables, samples / dim)
    rng, block = np.random.default_rng(0), max(_TOGETHER // samples, 1)
    blocks = [min(block, data_sets - first) for first in range(0, data_sets, block)]
    total = np.concatenate(
        [_log_likelihoods(tables, samples, sets, rng) for sets in blocks], axis=1
    )
    landscape = mean[:, None] + (total.mean(axis=1, keepdims=True) - total)
    landscape = make_interp_spline(tables.overlap, landscape, k=1)(_FINE)
    right = float(middle(teacher)) < _FINE
    difference = logsumexp(-landscape[~right], axis=0) - logsumexp(-landscape[right], axis=0)
    value, spread = difference.mean(), difference.std(ddof=1)
    return FluctuatingStates(
        **with_errors(free_energy_difference=(value, spread / data_sets**0.5)),
        spread=jnp.asarray(spread),
        preferred=jnp.asarray(np.mean(difference < 0)),
        converged=jnp.asarray(mean.argmin() < len(mean) - 1),
    )


class _Tables(NamedTuple):
    """The logarithm of p(y | omega) for fields omega of variance r^2, and -<ln p>.

    Fields:
        angle: arcsin r, from 0 on.
        overlap: overlaps m of both signs, in increasing order; |m| are the squares of r.
        cross: mean of -ln p over labels and fields, if labels have the density of the first angle
            and p is that of the second; for correlations of both signs.
        output: v (sigma(z) - c_0 - c_1 z) as a function of z.
    """

    angle: Float[np.ndarray, "angle"]
    overlap: Float[np.ndarray, "overlap"]
    log_density: Float[np.ndarray, "angle field label"]
    labels: Float[np.ndarray, "label"]
    cross: dict[int, RectBivariateSpline]
    values: tuple[Float[np.ndarray, "point"], Float[np.ndarray, "point"]]
    noise: float


@cache  # the points of a curve share them
def _tables(activation: Activation, readout: float, noise: float) -> _Tables:
    constant, linear = (float(part) for part in affine_part(activation))
    z = np.linspace(-9.0, 9.0, 4001)
    values = readout * (np.asarray(activation(jnp.asarray(z))) - constant - linear * z)
    width = noise**0.5
    top = np.abs(values[np.abs(z) < 6]).max() + 6 * width
    if top / width > _MOST_WIDTHS:
        raise ValueError(
            f"noise: labels spread over {top / width:.3g} of its standard deviations, more than "
            f"{_MOST_WIDTHS}: the noise, with the features other than the strongest in it, is too "
            "small beside the read-outs"
        )
    labels = np.linspace(-top, top, 2 * int(np.ceil(_LABELS_PER_WIDTH * top / width)) + 1)
    angle = np.linspace(0.0, np.arcsin(_LARGEST**0.5), _OVERLAPS)
    hidden = np.exp(-(_HIDDEN**2) / 2)
    hidden /= hidden.sum()

    def density(angle: float) -> Float[np.ndarray, "field label"]:
        field = np.sin(angle) * _FIELDS[:, None] + np.cos(angle) * _HIDDEN
        place = np.interp(field, z, values)
        gauss = np.exp(-((labels - place[..., None]) ** 2) / (2 * noise))
        return np.einsum("h,fhy->fy", hidden, gauss) / np.sqrt(2 * np.pi * noise)

    table = np.array([density(each) for each in angle])
    log_density = np.log(np.maximum(table, 1e-250))
    at = np.exp(-(_FIELDS**2) / 2)
    at *= (labels[1] - labels[0]) / at.sum()
    cross = {
        sign: RectBivariateSpline(
            angle, angle, -np.einsum("f,ify,jfy->ij", at, table[:, ::sign], log_density)
        )
        for sign in (1, -1)
    }
    r2 = np.sin(angle) ** 2
    overlap = np.concatenate([-r2[:0:-1], r2])
    return _Tables(angle, overlap, log_density, labels, cross, (z, values), noise)


def _potential(tables: _Tables, ratio: float) -> Float[np.ndarray, "overlap"]:
    """V(m), by the largest of many q."""

    def at(m: float) -> float:
        q = np.linspace(m**2, _LARGEST, _SELF_OVERLAPS + 1)[1:]
        label, own = np.arcsin(abs(m) / np.sqrt(q)), np.arcsin(np.sqrt(q))
        energy = tables.cross[1 if m >= 0 else -1](label, own, grid=False)
        return float(np.max(ratio * energy - (np.log1p(-q) + (q - m**2) / (1 - q)) / 2))

    return np.array([at(m) for m in tables.overlap])


def _log_likelihoods(
    tables: _Tables, samples: int, data_sets: int, rng: np.random.Generator
) -> Float[np.ndarray, "overlap set"]:
    """The sum of l over the examples of every data set. Its value at a negative overlap is that at
    m = 0."""
    field = rng.standard_normal(samples * data_sets)
    label = np.interp(field, *tables.values)
    label += tables.noise**0.5 * rng.standard_normal(field.shape)
    label = (label - tables.labels[0]) / (tables.labels[1] - tables.labels[0])
    variance, found = 1.0, []
    # Fields are drawn from the teacher's field downwards: each one given the one of larger
    # variance.
    for log_density, m in zip(
        tables.log_density[::-1], np.sin(tables.angle[::-1]) ** 2, strict=True
    ):
        shrunk = m / variance
        field = shrunk * field + (m * (1 - shrunk)) ** 0.5 * rng.standard_normal(field.shape)
        variance = m
        unit = field / m**0.5 if m > 0 else field
        place = (unit - _FIELDS[0]) / (_FIELDS[1] - _FIELDS[0])
        log_p = map_coordinates(log_density, [place, label], order=1, mode="nearest")
        found.append(log_p.reshape(data_sets, samples).sum(axis=1))
    right = np.array(found[::-1])
    return np.concatenate([np.broadcast_to(right[:1], (len(right) - 1, data_sets)), right])
