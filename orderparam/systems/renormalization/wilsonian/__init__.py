"""Renormalization with rescaling, of a regression whose loss is not quadratic: functional flow,
couplings, sampled posteriors.
"""
