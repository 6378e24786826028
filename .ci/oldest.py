"""Prints a pip constraint for each dependency of the project: its lower bound, the oldest version
that pyproject.toml allows."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
for requirement in project["dependencies"]:
    name, bound = re.match(r"([\w.-]+)>=([\w.]+)", requirement).groups()
    print(f"{name}=={bound}")
