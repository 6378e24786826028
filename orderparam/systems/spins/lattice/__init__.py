"""The Ising model on periodic lattices: solved exactly on the finite and the infinite square
lattice, and simulated in any dimension.
"""
