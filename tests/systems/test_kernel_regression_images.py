"""Studies on real images where only a part of a data set is present: sizes follow what is there,
and it is said."""

import numpy as np
import pytest

from orderparam.comparison import find
from orderparam.data import images as posed
from orderparam.data import load
from orderparam.systems.kernel_regression.pool import model as images


@pytest.fixture
def digits_alone(monkeypatch):
    monkeypatch.setattr(posed, "load", lambda name: load("digits"))
    images.image_pool.cache_clear()
    yield
    images.image_pool.cache_clear()


def test_a_pool_beyond_what_is_there_is_all_that_is_there(digits_alone):
    with pytest.warns(UserWarning, match="images are here, not 10000"):
        system = images.image_pool("mnist", "3-vs-8", pool=10_000)
    assert len(system.inputs) == np.isin(load("digits").labels, (3, 8)).sum()


def test_training_sets_of_the_full_study_leave_images_to_test_on(digits_alone):
    study = find("gpr-binary-images")
    parameters = study.parameters("full", settings={"tasks": "mnist:3-vs-8"})
    with pytest.warns(UserWarning, match=r"left out: n_train = \[1000, 3000\]"):
        curves = study.build(**parameters)
    assert all(max(curve.over["n_train"]) <= 300.0001 for curve in curves)
    with pytest.raises(ValueError, match="must be < 357, the size of the pool"):
        study.build(**{**parameters, "n_train": (1000,)})
