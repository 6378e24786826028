"""Training in time, and what can be pruned from a trained network."""
