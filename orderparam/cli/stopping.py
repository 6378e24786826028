"""When to stop gradient descent, as `features --stop` and `predict --stop` say it."""

from typing import Any

from orderparam.cli.terminal import console, new_table


def print_stop(found: Any, unit: str = "") -> None:
    """When to stop gradient descent, beside the best ridge; found: what `when_to_stop` returned.
    unit: what the scale of times rests on, if not on the network alone."""
    from orderparam.core.text import with_error

    out = console()
    out.print(f"\nGradient descent on {found.n_train} examples, from zero, with an intercept:")
    table = new_table("stopped", "error on held-out examples", right=True)
    table.add_row("at the best time", with_error(*found.stopped))
    table.add_row("never", with_error(*found.ended))
    table.add_row("never, with the best ridge", with_error(*found.ridged))
    out.print(table)
    gain, error = found.gain
    verdict = "the same within two standard errors"
    if abs(gain) > 2 * error:
        verdict = "stopping is better" if gain > 0 else "the ridge is better"
    span = f"as good: {found.earliest:.3g} to {found.latest:.3g}"
    lines = [
        f"best time    {found.time:.3g} ({span}), of a flow on half the mean square{unit}",
        f"             some {found.steps:.0f} steps at the rate 1 / (largest eigenvalue)"
        if found.steps >= 1
        else "             less than one step at the rate 1 / (largest eigenvalue)",
        f"gain         {gain:+z.1%} ± {error:.1%} of the error with the best ridge: {verdict}",
    ]
    if not found.inside:
        lines.append("             no need to stop: the error still falls at the end of the range")
    for line in lines:
        out.print(line)
