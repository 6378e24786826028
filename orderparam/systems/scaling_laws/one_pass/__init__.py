"""One-pass SGD on power-law random features: its risk, the best width at a given compute, and
schedules of the learning rate."""
