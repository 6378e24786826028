"""`orderparam explore`: the theories as a page in the browser."""

from pathlib import Path
from typing import Annotated

import typer

from orderparam.cli.errors import clear_errors
from orderparam.cli.limits import within_memory
from orderparam.core.paths import resolved

PORT = 5117


def explore(
    port: Annotated[
        int, typer.Option("--port", min=1024, max=65535, help="Port of the server on this machine.")
    ] = PORT,
    host: Annotated[
        str, typer.Option("--host", help="Another address than this machine's own; needs a token.")
    ] = "localhost",
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            help="Token that other people need to open the page (default with --host: a random "
            "one).",
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="NAME",
            help="Another name under which a browser may open it; may be repeated.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            help="Folder for measurements and for data files (default: explorer-results here).",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Open a page in the browser that shows any theory at any parameters, measurements beside it,
    and its phases."""
    with clear_errors(), within_memory():
        if token is not None and not 8 <= len(token) <= 200:
            raise ValueError(
                f"--token has {len(token)} characters: give at least 8 and at most 200"
            )
        from orderparam.explore.folder import default_folder
        from orderparam.explore.origins import checked_origins

        place, origins = resolved(folder or default_folder()), checked_origins(allow_origin or [])
        try:
            import bokeh  # noqa: F401
            import latex2mathml  # noqa: F401
            import panel  # noqa: F401
        except ImportError as error:
            raise ValueError(
                f"{error.name} is not installed: in a copy of the repository, pip install -e "
                '".[explore]"'
            ) from None
        from orderparam.explore.server import serve

        serve(place, port, host, token, origins, browser)
