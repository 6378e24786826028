"""Real images as scale-free data: power laws of their spectra and targets, and the exponents of
learning curves that follow."""
