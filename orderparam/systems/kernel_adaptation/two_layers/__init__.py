"""Two-layer networks, averaged over Gaussian data."""
