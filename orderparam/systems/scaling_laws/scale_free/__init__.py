"""Real images as scale-free data: power laws of spectra and targets, and the learning exponents."""
