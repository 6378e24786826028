"""Real couplings: capacity, volume, largest margin, fewest errors; linear programming, perceptron learning, hard margins."""
