"""Minimisers of any convex loss with l1 and l2 penalties."""
