"""Classifiers of images, trained by gradient descent, in four architectures."""
