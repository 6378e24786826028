"""Regression on a torus, whose kernel and target have known numbers of derivatives: the rate of
learning against the dimension of the data."""
