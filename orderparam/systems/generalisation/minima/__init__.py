"""Global minima of the training error that do not generalise, and how SGD gets there."""
