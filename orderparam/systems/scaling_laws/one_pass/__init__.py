"""One-pass SGD on power-law random features: risk, best width at a given compute, schedules."""
