"""Minimisers of convex losses with l1 and l2 penalties."""
