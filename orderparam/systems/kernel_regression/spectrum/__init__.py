"""Regression with a kernel given by its spectrum over the inputs; the training set is a random
sample of inputs."""
