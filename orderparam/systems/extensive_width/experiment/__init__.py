"""The experiments: the posterior sampled, and students trained."""
