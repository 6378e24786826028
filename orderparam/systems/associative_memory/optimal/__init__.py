"""Networks of largest stability and their basins of attraction."""
