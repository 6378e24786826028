"""`orderparam exponents`: how hard a target is to find."""

from typing import Annotated

import typer

from orderparam.cli.errors import clear_errors, warnings_in_one_line


def exponents(
    target: Annotated[
        str, typer.Argument(help='A function of z1, z2, ..., such as "z1*z2*z3" or "sign(z1*z2)".')
    ],
) -> None:
    """Compute how hard a target is to find: information, leap and generative exponents, and the
    sample sizes that follow."""
    with clear_errors(), warnings_in_one_line():
        from orderparam.core.formula import LARGEST_PRODUCT, parse
        from orderparam.core.registry import find_tool

        parse(target, LARGEST_PRODUCT)  # refused before what computes is imported
        print(find_tool("multi_index.exponents")(target))
