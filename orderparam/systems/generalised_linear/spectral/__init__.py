"""Spectral estimation: the leading eigenvector of a matrix of inputs weighted by a function of their labels."""
