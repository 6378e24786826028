"""`python -m orderparam` is the command `orderparam`."""

from orderparam.cli import main

main()
