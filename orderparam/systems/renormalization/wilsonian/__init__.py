"""Regression with a loss that is not quadratic: functional flow, flow of the couplings, and sampled
posteriors."""
