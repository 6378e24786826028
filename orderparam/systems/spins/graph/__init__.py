"""The Potts model on any graph, given by its edges."""
