"""Kernels of infinitely wide networks, their spectra, and regression with them.

The kernels themselves come from the architectures in `orderparam.networks`.
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.kernels.compression import compress
    from orderparam.kernels.covariance import Kernels
    from orderparam.kernels.cross_validation import CrossValidation, generalized_cross_validation
    from orderparam.kernels.effective_ridge import EffectiveRidge, effective_ridge
    from orderparam.kernels.gp import (
        Conditioned,
        KernelPosterior,
        Spectral,
        condition,
        diagonalise,
        gp_posterior,
    )
    from orderparam.kernels.gradient_flow import FlowPrediction, gradient_flow
    from orderparam.kernels.spectra import (
        finite_rank,
        gaussian_rbf,
        hypercube,
        power_law,
        sphere,
        torus,
    )
    from orderparam.kernels.spectrum import Spectrum

__all__ = exported(globals())
