"""The network itself."""
