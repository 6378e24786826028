"""Training in time, and pruning of a trained network."""
