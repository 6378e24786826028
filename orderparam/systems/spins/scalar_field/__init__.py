"""The scalar field on a lattice with a quartic potential, the continuous relative of the Ising
model."""
