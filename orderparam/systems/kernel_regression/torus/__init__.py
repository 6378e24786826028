"""Regression on a torus with a kernel and a target of given smoothness: the rate of learning as a
function of the dimension of the inputs."""
