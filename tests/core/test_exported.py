"""Star imports of topics hide nothing of the floors below them."""

import importlib
import pkgutil
from types import ModuleType

import pytest

import orderparam.systems

TOPICS = [module.name for module in pkgutil.iter_modules(orderparam.systems.__path__)]


@pytest.mark.parametrize("topic", TOPICS)
def test_a_star_import_brings_no_module(topic):
    package = importlib.import_module(f"orderparam.systems.{topic}")
    assert package.__all__
    values = {name: getattr(package, name) for name in package.__all__}
    assert not [name for name, value in values.items() if isinstance(value, ModuleType)]


def test_a_star_import_hides_no_module_of_kernels():
    names = {}
    exec("from orderparam.kernels import *", names)
    before = {name: names[name] for name in ("spectrum", "sphere")}
    exec("from orderparam.systems.kernel_regression import *", names)
    assert before == {name: names[name] for name in before}
    assert "self_consistent" in names
