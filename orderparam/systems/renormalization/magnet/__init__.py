"""The magnet beside the learning: expansions about four dimensions, a flow of local potentials,
spins in blocks.
"""
