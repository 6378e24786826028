"""The theory: Bayes-optimal states, their transitions, their limits, and students of limited width."""
