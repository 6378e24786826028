"""The magnet near its transition: epsilon expansion, bond moving, flow of the potential, and block
spins."""
