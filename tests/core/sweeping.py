"""A sweep as the command line runs it, for tests that interrupt and attack it: `python sweeping.py
STORE EXECUTOR`.

EXECUTOR: `here`, a number of workers, or a Dask scheduler's address.
"""

import sys

from orderparam.running.signals import end_on_signals

GRID = {"temperature": [0.5, 1.0, 2.0], "field": [0.1, 0.2]}
SEEDS = 20


def main() -> None:
    from orderparam.cli.errors import clear_errors, warnings_in_one_line

    with clear_errors(), warnings_in_one_line():
        from magnet import Paramagnet, unhurried

        import orderparam as op

        store, executor = sys.argv[1:]
        run = None if executor == "here" else int(executor) if executor.isdigit() else executor
        op.sweep(unhurried, Paramagnet(1.0), GRID, seeds=SEEDS, store=store, executor=run)


if __name__ == "__main__":
    end_on_signals()
    import typer

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app(())
