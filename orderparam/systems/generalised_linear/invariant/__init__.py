"""Linear measurements by matrices with random singular vectors, whose singular values are not those of Gaussian entries."""
