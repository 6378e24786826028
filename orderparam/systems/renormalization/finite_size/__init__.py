"""The number of samples as the size of a system: learning curves and magnets collapsed by one tool."""
