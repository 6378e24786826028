"""Convolutional networks of three layers that learn a teacher, on given training sets."""
