"""Kernels renormalised by one number: see `orderparam.kernels.common_scale`."""

from orderparam.kernels.common_scale import BRANCHES, Eigenbasis, Minima, action, minima, order_parameters, slope

__all__ = ["BRANCHES", "Eigenbasis", "Minima", "action", "minima", "order_parameters", "slope"]
