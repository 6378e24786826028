"""Convolutional networks on patches."""
