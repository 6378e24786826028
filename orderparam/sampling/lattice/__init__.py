"""Moves of spins on lattices and graphs: random words, clusters and their labels."""
