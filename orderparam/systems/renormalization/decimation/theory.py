"""Ridge, noise and non-Gaussianity along the decimation, and the learning curve of the remaining
modes.

The remaining modes can be treated in three ways, the closures of `decimated`:

    "effective ridge"    self-consistent equations with the leading-order ridge T' and noise s2'
    "equivalent kernel"  L_k = P lambda_k / (P lambda_k + T'), error sum_k (1 - L_k)^2 y_k^2, as if
                         their theory were quadratic
    "exact"              self-consistent equations with the exact couplings T*, s2*; the result is
                         the same for every cut
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from orderparam.core.needs import inside
from orderparam.core.result import Result
from orderparam.core.verb import theory
from orderparam.kernels.decimation import couplings, learnable, traces
from orderparam.kernels.effective_ridge import effective_ridge, learnability, ratio
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.renormalization.decimation.model import DecimatedRegression
from orderparam.systems.renormalization.spectra import kept_levels

Closure = Literal["effective ridge", "equivalent kernel", "exact"]


class DecimationFlow(Result):
    """Couplings along the flow. Levels are in decreasing order of eigenvalue; entry n of an array
    is the value of a coupling after all levels beyond n are integrated out.

    Fields:
        mode_count: number of modes that remain.
        eigenvalue: eigenvalue of level n.
        ridge: T'(n), the ridge to leading order.
        renormalized_noise: s2'(n), the noise variance to leading order.
        exact_ridge: T*(n), exact within the self-consistent theory.
        exact_noise: s2*(n), exact within the self-consistent theory.
        non_gaussianity: g(n), the posterior variance of the remaining modes divided by T*(n);
            infinite where T*(n) = 0.
        learnability: L_n = lambda_n / (lambda_n + kappa) of the theory with all modes.
        bare_learnability: P lambda_n / (P lambda_n + T'), where T' includes level n among those
            integrated out. `decimated` chooses its cut by this number.
        effective_ridge: P kappa, the value of the exact ridge when all modes are integrated out.
        threshold: kappa.
        frozen: number of modes with L > 1/2.
        residual: residual of the equation for kappa.
        converged: whether that equation was solved.
    """

    mode_count: Float[Array, "level"]
    eigenvalue: Float[Array, "level"]
    ridge: Float[Array, "level"]
    renormalized_noise: Float[Array, "level"]
    exact_ridge: Float[Array, "level"]
    exact_noise: Float[Array, "level"]
    non_gaussianity: Float[Array, "level"]
    learnability: Float[Array, "level"]
    bare_learnability: Float[Array, "level"]
    effective_ridge: Float[Array, ""]
    threshold: Float[Array, ""]
    frozen: Float[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


class RunningRidge(Result):
    """Ridge along the decimation by the recursion of `running_ridge`.

    Fields:
        mode_count: number of modes that remain, as in `DecimationFlow`.
        ridge: entry n is the ridge after integrating out all levels after n.
        end: ridge after integrating out all levels.
    """

    mode_count: Float[Array, "level"]
    ridge: Float[Array, "level"]
    end: Float[Array, ""]


class DecimatedCurve(Result):
    """Learning curve of the remaining theory after decimation.

    Fields:
        mode_count: number of modes that are kept.
        ridge: ridge of the remaining modes: T', or T* for the closure "exact".
        renormalized_noise: noise variance of the remaining modes: s2', or s2* for the closure
            "exact".
        threshold: kappa of these modes; ridge / P for the closure "equivalent kernel".
        effective_ridge: P kappa.
        test_error: mean of (f - y)^2 over inputs, for the posterior mean f and targets y without
            noise (no factor 1/2). The closure "equivalent kernel" neglects the scatter of f over
            training sets.
        bias: mean over inputs of (E f - y)^2, with E the average over training sets.
        found_cutoff: whether any mode was integrated out.
        residual: residual of the equation for kappa.
        converged: whether that equation was solved.
    """

    mode_count: Float[Array, ""]
    ridge: Float[Array, ""]
    renormalized_noise: Float[Array, ""]
    threshold: Float[Array, ""]
    effective_ridge: Float[Array, ""]
    test_error: Float[Array, ""]
    bias: Float[Array, ""]
    found_cutoff: Bool[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]


@theory
def decimation_flow(system: DecimatedRegression) -> DecimationFlow:
    r"""Ridge, noise and non-Gaussianity mode by mode, to leading order and exactly.

    With all modes, the self-consistent theory of kernel regression has the threshold $\kappa$ and
    learnabilities $L_k = \lambda_k / (\lambda_k + \kappa)$, where $P = T/\kappa + \sum_k L_k$. To
    leading order, a mode that is integrated out adds its variance to the ridge and its target power
    to the noise,

    $$ T'(n) = T + \sum_{k > n} \lambda_k , \qquad \sigma'^2(n) = \sigma^2 + \sum_{k > n} y_k^2 , $$

    The exact flow is, with $E_\sigma$ the test error against noisy labels,

    $$ T^*(n) = T + \kappa \sum_{k > n} L_k , \qquad \sigma^{*2}(n) = \sigma^2 + \sum_{k > n} \Big[
       (1 - L_k)^2 y_k^2 + \frac{L_k^2}{P} E_\sigma \Big] . $$

    The ratio of the quartic to the quadratic term of the expanded likelihood is 3/4 of
    `non_gaussianity`,

    $$ g(n) = \frac{\kappa \sum_{k \le n} L_k}{T^*(n)} . $$

    The flow over all levels is returned; `cut` is not used.

    Source: Howard, Jefferson, Maiti, Ringel (2024) for the leading order; the exact flow and g are
    derived here.

    >>> spectrum = Spectrum([1.0, 0.25, 0.1], [1.0, 0.5, 0.1])
    >>> flow = decimation_flow(DecimatedRegression(spectrum, n_train=10, temperature=0.1))
    >>> np.round(flow.ridge, 4), round(float(flow.effective_ridge), 4)
    (Array([0.45, 0.2 , 0.1 ], dtype=float64), 0.1391)
    """
    # The exact flow depends on kappa and on the errors of the theory with all modes.
    left = traces(system.spectrum, system.n_train, system.temperature, system.noise)
    found, solved = couplings(system.spectrum, left, system.temperature, system.noise), left.solved
    order = jnp.argsort(-system.spectrum.eigenvalues)
    weight = (system.spectrum.multiplicities * system.spectrum.eigenvalues)[order]
    return DecimationFlow(
        mode_count=found.mode_count,
        eigenvalue=found.eigenvalue,
        ridge=found.ridge,
        renormalized_noise=found.noise,
        exact_ridge=found.exact_ridge,
        exact_noise=found.exact_noise,
        non_gaussianity=ratio(found.variance, found.exact_ridge),
        learnability=solved.learnability[order],
        bare_learnability=learnability(found.eigenvalue, (found.ridge + weight) / system.n_train),
        effective_ridge=system.n_train * solved.threshold,
        threshold=solved.threshold,
        frozen=jnp.sum(jnp.where(solved.learnability > 0.5, system.spectrum.multiplicities, 0.0)),
        residual=solved.residual,
        converged=solved.converged,
    )


@theory
def running_ridge(system: DecimatedRegression) -> RunningRidge:
    r"""Ridge along the decimation by one sweep from the smallest eigenvalue on, without solving an
    equation.

    Every mode that is integrated out changes the ridge by

    $$ T \leftarrow T + \frac{\lambda_k T}{T + P \lambda_k} . $$

    Accuracy: this is an approximation, because the variance of every mode is reduced according to
    the ridge at that stage of the sweep and not according to the ridge at the end of the flow. The
    ridge stays below the exact one and is wrong at small T; it is exact if the data do not
    determine the modes that are integrated out ($P \lambda_k \ll T$).

    Source: derived here.

    >>> spectrum = Spectrum([1.0, 0.25, 0.1], [1.0, 0.5, 0.1])
    >>> sweep = running_ridge(DecimatedRegression(spectrum, n_train=10, temperature=0.1))
    >>> np.round(sweep.ridge, 4), round(float(sweep.end), 4)
    (Array([0.1195, 0.1091, 0.1   ], dtype=float64), 0.1314)
    """
    spectrum, order = system.spectrum, jnp.argsort(-system.spectrum.eigenvalues)
    levels = (spectrum.eigenvalues[order], spectrum.multiplicities[order])

    def integrate(ridge: Float[Array, ""], level: Any) -> tuple[Float[Array, ""], Float[Array, ""]]:
        eigenvalue, multiplicity = level
        return ridge + multiplicity * eigenvalue * ratio(
            ridge, ridge + system.n_train * eigenvalue
        ), ridge

    end, ridge = jax.lax.scan(
        integrate, jnp.asarray(system.temperature + spectrum.tail), levels, reverse=True
    )
    return RunningRidge(mode_count=jnp.cumsum(levels[1]), ridge=ridge, end=end)


@theory(needs={"threshold": inside(0, 1, why="None takes the cut of the system")})
def decimated(
    system: DecimatedRegression,
    *,
    threshold: float | None = None,
    closure: Closure = "effective ridge",
) -> DecimatedCurve:
    r"""Learning curve of the modes that remain when all modes beyond a cut are integrated out.

    The modes that are integrated out change the ridge and the noise as in `decimation_flow`. For
    the closures "effective ridge" and "exact" the remaining modes obey, with ridge $T'$ and noise
    $\sigma'^2$ (or $T^*$ and $\sigma^{*2}$),

    $$ P = \frac{T'}{\kappa} + \sum_{k \le \Lambda} L_k , \qquad E = \frac{\sigma'^2 + \sum_{k \le
       \Lambda} (1 - L_k)^2 y_k^2}{1 - \sum_{k \le \Lambda} L_k^2 / P} - \sigma^2 , \qquad
       L_k = \frac{\lambda_k}{\lambda_k + \kappa} , $$

    with $E$ = `test_error` and $\kappa$ = `threshold`. The closure "equivalent kernel" sets $\kappa
    = T'/P$ and omits the denominator of $E$.

    Args:
        threshold: number between 0 and 1. The search starts at the largest mode and ends at the
            first mode whose bare learnability is not above this number; the modes before it are
            kept. None (the default) keeps the `cut` largest modes of the system.
        closure: treatment of the remaining modes, see above; "effective ridge" by default.

    Raises:
        ValueError: for a threshold that is not between 0 and 1.

    Accuracy: "effective ridge" depends on the cut by terms of the order of the largest learnability
    that is integrated out; "equivalent kernel" is good only where T' lies in a gap of the spectrum;
    "exact" gives the same error for every cut.

    Source: Howard, Jefferson, Maiti, Ringel (2024) for the cut and the leading order; the exact
    couplings are derived here.

    >>> k = np.arange(1.0, 1001)
    >>> system = DecimatedRegression(Spectrum(k**-1.5, k**-1.5), n_train=100, temperature=0.05)
    >>> left = decimated(system, threshold=0.1)
    >>> int(left.mode_count), round(float(left.test_error), 5)
    (530, 0.27828)
    """
    spectrum, n_train = system.spectrum, system.n_train
    kept = (
        kept_levels(system)
        if threshold is None
        else learnable(spectrum, n_train, system.temperature, threshold)
    )
    gone = jnp.where(kept, 0.0, 1.0)
    # What a mode that is integrated out adds to the ridge and to the noise of the others.
    if closure == "exact":
        left = traces(spectrum, n_train, system.temperature, system.noise)
        ridge = system.temperature + spectrum.tail + gone @ left.ridge
        noise = system.noise + spectrum.tail_power + gone @ left.noise
    else:
        ridge = (
            system.temperature
            + spectrum.tail
            + gone @ (spectrum.multiplicities * spectrum.eigenvalues)
        )
        noise = system.noise + spectrum.tail_power + gone @ spectrum.target_power
    # The theory of the remaining modes, with the ridge and the noise that the other modes add.
    alone = Spectrum(
        jnp.where(kept, spectrum.eigenvalues, 0.0),
        jnp.where(kept, spectrum.target_power, 0.0),
        spectrum.multiplicities,
    )
    solved = effective_ridge(alone, n_train, ridge)
    classical = closure == "equivalent kernel"
    kappa = ridge / n_train if classical else solved.threshold
    lost = (1 - learnability(alone.eigenvalues, kappa)) ** 2 @ alone.target_power
    noisy = lost + noise if classical else ratio(lost + noise, solved.complement)
    # Only the exact couplings contain what the modes that were integrated out have learned.
    learned = jnp.where(kept | (closure == "exact"), learnability(spectrum.eigenvalues, kappa), 0.0)
    return DecimatedCurve(
        mode_count=jnp.sum(jnp.where(kept, spectrum.multiplicities, 0.0)),
        ridge=ridge,
        renormalized_noise=noise,
        threshold=kappa,
        effective_ridge=n_train * kappa,
        test_error=noisy - system.noise,
        bias=(1 - learned) ** 2 @ spectrum.target_power + spectrum.tail_power,
        found_cutoff=~jnp.all(kept),
        residual=jnp.where(classical, 0.0, solved.residual),
        converged=classical | solved.converged,
    )
