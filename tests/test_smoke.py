"""A few seconds of everything: the import, the command line, and one small study of each topic. Run
on every Python and JAX."""

import subprocess
import sys

import numpy as np
import pytest

import orderparam as op
from orderparam.comparison import compare, find, studies

pytestmark = pytest.mark.smoke

# topic -> a study of it, and settings that make it small
SMALL = {
    "associative_memory": (
        "dense-memory",
        "loads=0.05 spins=20 exponential_loads=0.3 exponential_spins=10 trials=2 seeds=2",
    ),
    "committee": ("committee-specialisation", "sample_ratios=1.0 runs=1.0 input_dim=60 seeds=2"),
    "differential_equations": (
        "equation-learning-curve",
        "frequencies=8 n_points=4,6 seeds=2",
    ),
    "diffusion": (
        "diffusion-collapse",
        "input_dim=8 stored=10 fractions=1 starts=8 seeds=2",
    ),
    "extensive_width": (
        "quadratic-specialisation",
        "input_dims=8 ratios=2 draws=20 points=4 seeds=2",
    ),
    "generalisation": ("bad-global-minima", "examples=120 n_train=40 width=16 seeds=2"),
    "attention": (
        "attention-recovery",
        "tokens=2 marks=0.8 input_dim=60 seeds=2",
    ),
    "language_models": (
        "language-rates",
        (
            "widths=8,16,24 learning_rates=0.01,0.02,0.04,0.08 n_train=1024 "
            "packages=pydoc_data,email seeds=2"
        ),
    ),
    "word_frequencies": ("words-refitted", "drawn=3000 types=500 seeds=2"),
    "in_context": (
        "in-context-length",
        "context_ratios=1 test_context_ratios=1,4 input_dim=8 seeds=2",
    ),
    "kernel_adaptation": (
        "deep-preactivations",
        "input_dim=6 n_train=10 measured_widths=10 particles=20 draws=20 seeds=2",
    ),
    "kernel_regression": (
        "digits-learning-curve",
        "n_train=8,16 network_n_train=8 network_seeds=2 width=16 seeds=4",
    ),
    "multi_index": ("sgd-exit-times", "dims=64,128 cubic_dims=16,24 seeds=8"),
    "one_step": ("one-step-groups", "input_dim=40 sample_ratios=1 seeds=2"),
    "learning_from_models": (
        "masked-teacher",
        "modes=40 n_train=20 noises=0.01 seeds=2",
    ),
    "online_sgd": ("sgd-saad-solla", "dim=40 noises=0.01 horizon=10 long_horizon=20 seeds=2"),
    "proportional": (
        "finite-width-order",
        "n_train=10 n_test=10 temperatures=0.1 measured_widths=10 samples=20 seeds=2",
    ),
    "random_features": ("random-features-real-data", "width=30 ridges=0.01 n_train=40 seeds=2"),
    "random_networks": ("deep-kurtosis", "widths=16 depth=2 networks=500 seeds=2"),
    "renormalization": (
        "finite-size",
        "n_train=8,16 modes=30 lengths=8,16 sweeps=20 replicas=2 temperatures=2.2,2.3 seeds=2",
    ),
    "scaling_laws": ("sgd-compute-frontier", "widths=10 sgd_width=10 horizon=100 seeds=2"),
    "generalised_linear": ("one-bit-estimation", "sample_ratios=0.5 input_dim=60 seeds=2"),
    "perceptron": (
        "perceptron-rules",
        "batch_ratios=0.5 online_ratios=0.5 input_dim=20 stream_dim=20 seeds=2",
    ),
    "spins": ("ising-square", "lengths=4 temperatures=2 replicas=2 sweeps=40 seeds=2"),
    "storage_capacity": (
        "capacity-separability",
        "dims=6 loads=1.5,2,2.5 learned=1.2 samples=6 seeds=2",
    ),
    "several_steps": ("giant-steps-directions", "input_dim=64 steps=2 neurons=16 seeds=2"),
    "broken_symmetry": (
        "glass-ground-state",
        "sizes=6,8 samples=3 sweeps=20 seeds=2",
    ),
    "reused_data": (
        "batch-size-noise",
        "input_dim=20 steps=5 fractions=0.5 learning_rates=0.05 seeds=2",
    ),
    "features_in_time": ("width-transfer", "widths=8,16 n_train=6 steps=2 samples=16 seeds=2"),
    "boolean_functions": ("sgd-against-bayes", "widths=4 width=4 networks=5 seeds=2"),
    "trained_networks": ("alignment-of-few-neurons", "n_train=12 depth=1 widths=16 seeds=2"),
    "deep_linear": ("linear-depth-in-time", "depths=2 duration=2 records=4 seeds=2"),
    "training_in_time": ("momentum-in-time", "input_dim=20 steps=5 momenta=0.5 seeds=2"),
}


def test_every_topic_has_its_small_study():
    # not those of other tests
    own = [
        study for study in studies().values() if study.build.__module__.startswith("orderparam.")
    ]
    assert set(SMALL) == {study.topic.replace(" ", "_") for study in own}


@pytest.mark.parametrize("topic", SMALL)
def test_a_small_study_gives_finite_numbers_and_a_figure(topic, tmp_path):
    name, words = SMALL[topic]
    settings = dict(word.split("=") for word in words.split())
    comparison = compare(find(name), settings=settings, out=tmp_path / "result", progress=False)
    assert (tmp_path / "result" / "figure.png").stat().st_size > 0
    assert comparison.datasets
    for curve in comparison.datasets.values():
        numbers = [
            v.values for v in curve.data_vars.values() if np.issubdtype(v.dtype, np.floating)
        ]
        assert any(np.isfinite(values).any() for values in numbers)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["list"]])
def test_the_command_line_answers(arguments):
    answer = subprocess.run(
        [sys.executable, "-m", "orderparam", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    assert answer.stdout


def test_every_public_name_is_there():
    for name in op.__all__:
        assert getattr(op, name) is not None
