"""Convolutional classifiers of images with pooling, layer by layer."""
