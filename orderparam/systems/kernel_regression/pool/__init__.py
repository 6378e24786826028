"""A finite pool of real inputs, all with their targets, from which training sets are drawn without
replacement."""
