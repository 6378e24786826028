"""Regression on sequences with a kernel that does not see the order of tokens: what is learned in
each sector under permutations."""
