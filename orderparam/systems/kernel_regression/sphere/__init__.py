"""Inputs on a sphere: polynomials are learned degree by degree."""
