"""Star imports of topics hide nothing of the floors below them."""

import importlib
import pkgutil
import subprocess
import sys
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


def test_a_star_import_hides_no_name_of_kernels():
    names = {}
    exec("from orderparam.kernels import *", names)
    before = {name: value for name, value in names.items() if not name.startswith("_")}
    assert {"Spectrum", "sphere"} <= set(before)
    assert not [name for name, value in before.items() if isinstance(value, ModuleType)]
    exec("from orderparam.systems.kernel_regression import *", names)
    assert before == {name: names[name] for name in before}
    assert "self_consistent" in names


def test_a_module_does_not_hide_the_theory_of_its_name():
    module = importlib.import_module("orderparam.systems.perceptron.annealed")
    from orderparam.systems.perceptron import annealed

    assert annealed is module.annealed
    assert module.annealed is importlib.import_module("orderparam.systems.perceptron").annealed


def test_a_topic_lists_names_and_modules_before_they_are_imported():
    names = dir(importlib.import_module("orderparam.systems.diffusion"))
    assert {"score_losses", "FeatureScore", "score_theory"} <= set(names)
    assert not {"TYPE_CHECKING", "exported"} & set(names)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        importlib.import_module("orderparam.systems.diffusion").nonsense  # noqa: B018


def test_one_theory_imports_no_sampler_and_no_figure():
    """Each of these takes a good part of a second."""
    program = (
        "import sys; from orderparam.systems.spins import MeanFieldMagnet, mean_field\n"
        "mean_field(MeanFieldMagnet(0.5))\n"
        "slow = {'blackjax', 'matplotlib', 'scipy.stats', 'sklearn', 'zarr'} & sys.modules.keys()\n"
        "assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
