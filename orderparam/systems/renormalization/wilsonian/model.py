"""Bayesian regression at large ridge with a loss that is not quadratic, for given spectra, real
kernels, and power laws.
"""

import ast
import math
from dataclasses import dataclass
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Num

from orderparam.core.formula import index, parse
from orderparam.core.system import System, parameter, part, structure
from orderparam.gaussian.formula import switches, value
from orderparam.gaussian.quadrature import standard_normal_rule
from orderparam.kernels.spectra import power_law_levels
from orderparam.kernels.spectrum import Spectrum
from orderparam.systems.renormalization.spectra import check_pool, check_positive, pool_modes

# ------------------------------------------------------------------------------------------------
# Even losses of the deviation d = f - y, as formulas, and their averages over Gaussian deviations.

# Smallest squared deviation, because the slope of the square root is infinite at zero.
_SMALLEST = 1e-300
_PROBES = np.linspace(0.0, 6.0, 121)  # deviations at which a loss is checked


@dataclass(frozen=True)
class EvenLoss:
    """A smooth even loss l(z) of the deviation z = f - y, given as a formula in z.

    Examples: "z**2", "2*log(exp(z) + exp(-z))", "2 - 2*exp(-z**2/2)".
    """

    formula: str

    def __call__(self, deviation: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        return value(parse(self.formula), jnp.asarray(deviation)[..., None], jnp)

    def stiffness(self, squared_deviation: Float[Array, ""]) -> Float[Array, ""]:
        """d/dQ E l(sqrt(Q) z) = (1/2) E l''(sqrt(Q) z) for z ~ N(0, 1); it is 1 for the square loss
        z^2.
        """
        nodes, weights = standard_normal_rule()
        return (
            weights @ self.second(jnp.sqrt(jnp.maximum(squared_deviation, _SMALLEST)) * nodes) / 2
        )

    def average(self, squared_deviation: Float[Array, ""]) -> Float[Array, ""]:
        """E l(sqrt(Q) z) for z ~ N(0, 1) and Q > 0."""
        nodes, weights = standard_normal_rule()
        return weights @ self(jnp.sqrt(squared_deviation) * nodes)

    def second(self, deviation: Float[Array, "point"]) -> Float[Array, "point"]:
        """Second derivative l''(d) at every deviation d."""
        return jax.vmap(jax.grad(jax.grad(lambda d: jnp.asarray(self(d), float))))(
            jnp.asarray(deviation)
        )

    def __repr__(self) -> str:
        return self.formula


def even_loss(what: str | EvenLoss) -> EvenLoss:
    """The loss with a given formula.

    Raises `ValueError` unless the formula contains z alone, is smooth and is even.
    """
    if isinstance(what, EvenLoss):
        return what
    if not isinstance(what, str):
        raise ValueError("must be a formula in z = f - y, such as 'z**2'")
    tree = parse(what)
    if any(isinstance(node, ast.Name) and (index(node.id) or 0) > 0 for node in ast.walk(tree)):
        raise ValueError("must be a formula in z alone")
    loss = EvenLoss(what)
    if any(True for _ in switches(tree)) or not bool(
        jnp.all(jnp.isfinite(loss.second(jnp.asarray(_PROBES))))
    ):
        raise ValueError("must be smooth: no abs, sign, relu, step, and no pole")
    if not np.allclose(
        loss(jnp.asarray(_PROBES)), loss(jnp.asarray(-_PROBES)), rtol=1e-12, atol=1e-300
    ):
        raise ValueError("must be even, l(-z) = l(z)")
    return loss


class InteractingRegression(System):
    r"""Bayesian regression with the loss $[\ell(d) + u d^4] / (2T)$ of a sample, $d = f - y$.

    The prior is $f_k \sim N(0, \lambda_k)$. At large ridge the loss of the $P$ samples can be
    replaced by its average over inputs. For Gaussian features the averaged loss depends on $Q =
    \sum_k (f_k - y_k)^2$ alone, so that the action is

    $$ S[f] = \sum_k \frac{f_k^2}{2 \lambda_k}
       + \frac{\rho}{2} \Big[ E_z\, \ell(\sqrt Q z) + 3 u Q^2 \Big] ,
       \qquad \rho = \frac P T , \quad z \sim N(0, 1) $$

    with $\lambda_k$ and $y_k^2$ of `spectrum`, $P$ = `n_train`, $T$ = `temperature`, $u$ =
    `quartic` and $\ell$ = `loss`; the square loss is $\ell(d) = d^2$.

    Raises:
        ValueError: for eigenvalues that are not positive, a cut beyond the number of modes, and
            losses that are not even or not smooth.
    """

    spectrum: Spectrum = part(
        "spectrum of the kernel over the inputs, with the target's power on it"
    )
    n_train: float = parameter("number of training samples P", above=0)
    temperature: float = parameter("temperature T", above=0)
    quartic: float = parameter("weight u of the quartic term of the loss", minimum=0, default=0.0)
    cut: float = parameter(
        "number of modes that are kept by a flow; inf for all",
        minimum=1,
        infinite=True,
        default=math.inf,
    )
    loss: EvenLoss = structure(
        "the rest of the loss, an even formula in z = f - y", convert=even_loss, default="z**2"
    )

    def __check_init__(self) -> None:
        check_positive(self)

    @property
    def density(self) -> Float[Array, ""]:
        """rho = P / T."""
        return jnp.asarray(self.n_train / self.temperature)


class InteractingPool(InteractingRegression):
    """`InteractingRegression` on training sets drawn without replacement from a pool of real
    inputs.

    `features` are the modes phi_k(x_i) of a real kernel, normalised over the pool, in the order of
    the spectrum. Theories assume independent Gaussian features.
    """

    features: Float[Array, "pool mode"] = parameter(
        "values of the modes at all inputs", kw_only=True
    )
    targets: Float[Array, "pool"] = parameter("targets of all inputs", kw_only=True)

    def __check_init__(self) -> None:
        check_positive(self)
        check_pool(self)

    @classmethod
    def from_kernel(
        cls,
        kernel: Num[ArrayLike, "pool pool"],
        targets: Num[ArrayLike, "pool"],
        n_train: Any,
        temperature: Any,
        modes: int | None = None,
        **fields: Any,
    ) -> Self:
        """The pool with a given kernel matrix and given targets. The prior contains the largest
        `modes` modes of the kernel (None: all); the part of the target outside of these modes
        cannot be learned.
        """
        spectrum, features = pool_modes(kernel, targets, modes)
        return cls(spectrum, n_train, temperature, features=features, targets=targets, **fields)


class ScaleFreeRegression(System):
    r"""`InteractingRegression` with power laws and the square loss.

    $$ \lambda_k = k^{-(1 + \alpha)} , \qquad y_k^2 = k^{-(1 + \beta)} , \qquad k = 1 \dots n $$

    with $\alpha$ = `kernel_decay`, $\beta$ = `target_decay` and $n$ = `modes`. In the notation of
    Caponnetto, De Vito (2007) the capacity is $a = 1 + \alpha$ and the source $r = \beta / (2a)$.
    """

    kernel_decay: float = parameter(
        "alpha: eigenvalues fall as k^-(1 + alpha)", above=0, maximum=20
    )
    target_decay: float = parameter(
        "beta: target powers fall as k^-(1 + beta)", above=0, maximum=40
    )
    n_train: float = parameter("number of training samples P", above=0)
    temperature: float = parameter("temperature T", above=0)
    quartic: float = parameter("weight u of the quartic term of the loss", minimum=0, default=0.0)
    modes: float = parameter("number of modes", minimum=2, maximum=5e11, integer=True, default=2e6)

    @property
    def density(self) -> Float[Array, ""]:
        """rho = P / T."""
        return jnp.asarray(self.n_train / self.temperature)

    @property
    def spectrum(self) -> Spectrum:
        """The spectrum in 512 levels whose sums are those over all modes (see
        `orderparam.kernels.spectra.power_law_levels`).
        """
        return power_law_levels(1 + self.kernel_decay, 1 + self.target_decay, self.modes)

    @property
    def loss(self) -> EvenLoss:
        return EvenLoss("z**2")

    @property
    def cut(self) -> float:
        return math.inf
