"""Ridge and label noise that depend on the input, as those do that non-Gaussian modes leave when they are integrated out."""
