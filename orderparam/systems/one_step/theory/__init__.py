"""The theories: what the step makes of the first layer, the read-out on it, and the spectrum of its features."""
