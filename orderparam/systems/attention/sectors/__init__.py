"""Regression on sequences with a kernel that does not depend on the order of tokens: learning
curves of each sector under permutations."""
