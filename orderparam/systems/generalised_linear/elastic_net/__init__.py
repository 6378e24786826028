"""Least squares with l1 and l2 penalties: the Lasso, ridge regression and the elastic net."""
