"""The Ising model on periodic lattices: exact on the square lattice, finite and infinite, and
simulated in any dimension.
"""
