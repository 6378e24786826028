"""The states of a point of a sweep, as numbers in its store."""

MISSING, DONE, UNCONVERGED, FAILED = 0, 1, 2, 3
STATUS_MEANINGS = ("missing", "done", "unconverged", "failed")
