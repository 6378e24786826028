"""`orderparam design`: how well a linear model can be estimated from a user's rows."""

from typing import Annotated

import typer

from orderparam.cli.arguments import check_file
from orderparam.cli.errors import clear_errors, warnings_in_one_line
from orderparam.cli.limits import within_memory


def design(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Rows of numbers (.npy, .npz, .csv, .tsv).")
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="Labels: a column or array, for .npy also a second file (default: y, or the "
            "last).",
        ),
    ] = None,
    no_labels: Annotated[
        bool, typer.Option("--no-labels", help="All columns are inputs; there are no labels.")
    ] = False,
    weights: Annotated[
        str, typer.Option("--weights", help="Law of the weights: gaussian, rademacher or sparse.")
    ] = "gaussian",
    kind: Annotated[
        str | None, typer.Option("--kind", help="linear or signs (default: from the labels).")
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise",
            help="Variance of the noise divided by the variance of the signal (default: estimated "
            "from the labels).",
        ),
    ] = None,
) -> None:
    """Assess if a linear model is identifiable from these rows, and the errors of the best
    estimators, in theory and on held-out rows."""
    with clear_errors(), warnings_in_one_line(), within_memory():
        check_file(file)
        from orderparam.core.registry import find_tool
        from orderparam.data import load_file
        from orderparam.data.files import load_design

        assess_design = find_tool("generalised_linear.assess_design")
        if no_labels:
            if target is not None:
                raise ValueError(
                    f"--no-labels and --target {target} contradict each other: leave one of them "
                    "out"
                )
            print(assess_design(load_design(file), weights=weights, kind=kind, noise=noise))
        else:
            data = load_file(file, target)
            print(assess_design(data.inputs, data.labels, weights=weights, kind=kind, noise=noise))
