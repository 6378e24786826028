"""Equilibrium: posteriors by Langevin, MALA, HMC and NUTS with R-hat and effective sample size;
clusters of spins on lattices."""

from orderparam.sampling.curvature import largest_curvature, variance_inflation
from orderparam.sampling.estimate import Estimate, estimate
from orderparam.sampling.posterior import Samples, sample
