"""Every spin coupled to every other (Curie-Weiss): exact at any size, with its limit, its
metastable states and their end.
"""
