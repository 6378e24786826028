"""Learning rules of the perceptron: from all examples at once, and from one example at a time."""
