"""The Hopfield model."""
