"""A perceptron that learns from a perceptron: the worst, the typical and the measured error."""
