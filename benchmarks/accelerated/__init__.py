"""The programs that `accelerator.py` times on an accelerator and on the processor, and the ways of
running one program on either device in either precision.
"""
