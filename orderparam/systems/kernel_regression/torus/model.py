"""Kernel regression on inputs that are uniform on a torus, with a kernel and a target of given
smoothness. The curse of dimensionality is usually stated for this problem.
"""

from typing import Self

from orderparam.core.system import parameter
from orderparam.kernels.spectra import torus
from orderparam.systems.kernel_regression.spectrum.model import KernelRegression


class TorusRegression(KernelRegression):
    r"""Kernel regression on inputs that are uniform on the torus $[0, 2\pi)^d$.

    The kernel depends on the difference of two inputs only, so that its modes are waves. The target
    is a Gaussian random field that depends on the first r coordinates:

    $$ \lambda_k \propto (1 + |k|^2)^{-(s + d/2)}, \qquad
       E\, y_k^2 \propto (1 + |k|^2)^{-(a + r/2)}, \qquad |k| \le R $$

    with d = `input_dim`, r = `target_dim`, R = `cut`, s the smoothness of the kernel and a that of
    the target. k is a wave vector, an integer vector of d entries; in the target all but its first
    r entries are 0. Eigenvalues and target power each sum to 1. `from_smoothness` computes the
    spectrum. For s = a and r = d the kernel is the covariance of the target, and a `temperature`
    equal to the label `noise` is optimal.

    Source: Stone (1982), for the problem and its rates; the spectrum is chosen here.

    >>> plane = TorusRegression.from_smoothness(2, 1.0, 1.0, 64, 0.1, 0.1, cut=30)
    >>> float(plane.spectrum.multiplicities.sum())  # waves with |k| <= 30
    2821.0
    """

    input_dim: int = parameter("input dimension d", minimum=1, integer=True, default=1)
    target_dim: int = parameter(
        "number r of coordinates on which the target depends", minimum=1, integer=True, default=1
    )
    cut: float = parameter("length R of the largest wave vector", above=0, default=10.0)

    @classmethod
    def from_smoothness(
        cls,
        input_dim: int,
        smoothness: float,
        target_smoothness: float,
        n_train: float,
        temperature: float,
        noise: float = 0.0,
        *,
        cut: float,
        target_dim: int | None = None,
    ) -> Self:
        """The regression problem with kernel and target of given smoothness.

        Args:
            input_dim: input dimension d.
            smoothness: smoothness s > 0 of the kernel.
            target_smoothness: smoothness a > 0 of the target.
            n_train: number P of training samples.
            temperature: ridge T.
            noise: variance of the label noise. Default 0.
            cut: length R of the largest wave vector.
            target_dim: number r of coordinates on which the target depends. Default d.
        """
        relevant = input_dim if target_dim is None else target_dim
        spectrum = torus(input_dim, smoothness, target_smoothness, cut, relevant)
        return cls(
            spectrum,
            n_train,
            temperature,
            noise,
            input_dim=input_dim,
            target_dim=relevant,
            cut=cut,
        )
