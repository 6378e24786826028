"""Equilibrium: posteriors by Langevin, MALA, HMC and NUTS with R-hat and effective sample size;
clusters of spins on lattices."""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.sampling.curvature import largest_curvature, variance_inflation
    from orderparam.sampling.estimate import Estimate, estimate
    from orderparam.sampling.posterior import Samples, doubled, sample

__all__ = exported(globals())
