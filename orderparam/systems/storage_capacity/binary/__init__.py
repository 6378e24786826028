"""Couplings +-1: entropy of solutions and capacity; counting all of them, and simulated annealing."""
