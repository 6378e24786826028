"""Packages that measure what `orderparam.observables` measures, on cases of which the truth is
known; run by benchmarks/beside_inspect_peers.py."""
