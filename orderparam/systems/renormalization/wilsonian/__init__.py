"""Regression with a loss that is not quadratic: functional flow, couplings, samples."""
