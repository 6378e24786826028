"""The precision that importing the package sets, and that it leaves to a person who has chosen."""

import os
import subprocess
import sys

import pytest

SETTING = "JAX_DEFAULT_MATMUL_PRECISION"


def printed(code: str, chosen: dict[str, str]) -> str:
    """What a fresh process prints."""
    environment = {name: value for name, value in os.environ.items() if name != SETTING} | chosen
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


FOUND = "import jax; print(jax.config.jax_default_matmul_precision)"


@pytest.mark.parametrize(
    ("before", "chosen", "precision"),
    [
        ("", {}, "highest"),
        ("import jax; ", {}, "highest"),
        ("", {SETTING: "tensorfloat32"}, "tensorfloat32"),
        (
            "import jax; jax.config.update('jax_default_matmul_precision', 'default'); ",
            {},
            "default",
        ),
    ],
)
def test_products_are_in_full_precision_unless_chosen_otherwise(before, chosen, precision):
    assert printed(f"{before}import orderparam; {FOUND}", chosen) == precision
