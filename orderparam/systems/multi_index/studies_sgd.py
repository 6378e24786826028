"""Studies of stochastic gradient descent on targets of one direction: when it leaves the plateau,
with fresh and re-used examples, in batches."""

import math
from collections.abc import Iterator

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel, vertical
from orderparam.systems.multi_index.model import SphericalSGD
from orderparam.systems.multi_index.sgd_experiment import exit_chain, overlap_chain
from orderparam.systems.multi_index.theory import exit_time, overlap_flow


def _exits(degree: int, dims: tuple[int, ...], seeds: int) -> list[Curve]:
    formula = "z" if degree == 1 else f"He{degree}(z)/sqrt({math.factorial(degree)})"
    system = SphericalSGD(
        target=formula,
        student=formula,
        learning_rate={1: 0.5, 2: 0.1, 3: 0.5}[degree],
        rate_exponent=max(degree / 2 - 1, 0.0),
        horizon=40.0 * max(dims),
    )
    over = {"input_dim": dims}
    facets = {"information exponent": degree}
    return [
        Curve("diffusion of the overlap", exit_time, system, over, facets=facets),
        Curve("SGD", exit_chain, system, over, seeds=seeds, batch_seeds=True, facets=facets),
    ]


@study(
    "sgd-exit-times",
    title=(
        "SGD leaves its start after samples that grow about as d, d log d and d² for "
        "information exponents 1, 2 and 3"
    ),
    source="Ben Arous, Gheissari, Jagannath 2021, theorem 1.3; Arnaboldi et al. 2023",
    full={
        "dims": (128, 512, 2048, 8192, 32768),
        "cubic_dims": (32, 64, 128, 256, 512),
        "seeds": 256,
    },
    gallery={"dims": (128, 256, 512, 1024, 2048), "cubic_dims": (24, 48, 96, 192, 384)},
    seconds=(60, 3600),
    observables=("exit_samples",),
    explained=(
        "The diffusion theory assumes small steps, but at small d the steps for degree 3 are "
        "not small: over all d its runs have the exponent 1.92(13), the theory 2.16. Control "
        "with 192 runs: at d = 24 the runs of degree 3 need 181(27) % more samples than in "
        "theory, 57(14) % more with half the learning rate, and 15(10) % more with a quarter "
        "of it; at d = 96 12(8), 0(7) and 5(9) % more."
    ),
    panels=lambda p: [
        Panel(
            "input_dim",
            "exit_samples",
            by="information exponent",
            log="xy",
            fit="d",
            ylabel="samples $n$ until $|m| = 1/2$",
            ylim=(None, 2e3 * max(p["dims"])),  # room for the legend of exponents
            text={degree: rf"$\ell = {degree}$" for degree in (1, 2, 3)},
        )
    ],
    caption=r"""
        One neuron learns from $n$ samples in $d$ dimensions by spherical one-pass SGD on the
        correlation loss. The activations of neuron and target are the normalised Hermite polynomial
        of degree $\ell$, which is the information exponent; the learning rates are 0.5, 0.1 and
        $0.5/\sqrt{{d}}$ for $\ell$ = 1, 2 and 3; $m$: overlap with the target's direction. A run
        has left its random start when $|m|$ reaches 1/2. Theory: mean first-passage time of the
        diffusing overlap. Exponents are given with 95 % intervals and, in square brackets, with the
        slope of the theory over the same $d$. For large $d$ the theory has $n \sim d$, $d\log d$
        and $d^2$.
    """,
)
def sgd_exit_times(
    dims: tuple[int, ...] = (128, 512, 2048),
    cubic_dims: tuple[int, ...] = (48, 96, 192),
    seeds: int = 96,
) -> Iterator[Curve]:
    yield from _exits(1, dims, seeds)
    yield from _exits(2, dims, seeds)
    yield from _exits(3, cubic_dims, seeds)


@study(
    "sgd-data-reuse",
    title=(
        "SGD that uses each sample twice finds a cubic target after a number of samples in "
        "proportion to the dimension; if it uses them once, the number grows as about the cube "
        "between 32 and 128 inputs"
    ),
    source="Dandi, Troiani et al. 2024; Arnaboldi et al. 2024",
    full={
        "dims": (64, 256, 1024, 4096),
        "one_look_dims": (32, 64, 128, 256),
        "path_dim": 4096,
        "seeds": 256,
    },
    seconds=(60, 3600),
    observables=("exit_samples", "norm"),
    explained=(
        "If each sample is used once, single steps of SGD are not small for degree 3 and d < "
        "100, while the diffusion theory assumes small steps."
    ),
    panels=[
        Panel(
            "sample_ratio",
            "norm",
            by="way",
            where={"part": "path"},
            log="x",
            ylabel="overlap $|m|$",
        ),
        Panel(
            "input_dim",
            "exit_samples",
            by="way",
            where={"part": "exit"},
            log="xy",
            fit="d",
            ylabel="$n$ until $|m| = 0.3$",
        ),
    ],
    caption=r"""
        Target $-\mathrm{{He}}_3/\sqrt{{6}}$ (information exponent 3, generative exponent 1),
        student $\mathrm{{erf}}(z/\sqrt{{2}})$, correlation loss; $m$: overlap of their directions.
        One look: each sample is used once, learning rate $1/\sqrt{{d}}$; two looks: used twice,
        first step 1, learning rate 0.3. Left: $d$ = {path_dim}, all runs from $m$ = 0.1, flow for
        $d\to\infty$. Right: random starts, mean first-passage time; exponents with 95 % intervals.
        The time of one look grows faster than its asymptotic $d^2$ at these $d$.
    """,
)
def sgd_data_reuse(
    dims: tuple[int, ...] = (64, 256, 1024),
    one_look_dims: tuple[int, ...] = (32, 64, 128),
    path_dim: int = 512,
    seeds: int = 64,
) -> Iterator[Curve]:
    base = SphericalSGD(
        target="-He3(z)/sqrt(6)",
        student="erf(z/sqrt(2))",
        exit_overlap=0.3,
        start="signed",
        horizon=1e5,
    )
    ways = {
        "one look": base.with_(learning_rate=1.0, rate_exponent=0.5),
        "two looks": base.with_(learning_rate=0.3, repetition=1.0),
    }
    for way, system in ways.items():
        over = {"input_dim": one_look_dims if way == "one look" else dims}
        exits, paths = ({"way": way, "part": part} for part in ("exit", "path"))
        yield Curve("theory", exit_time, system, over, facets=exits)
        yield Curve("SGD", exit_chain, system, over, seeds=seeds, batch_seeds=True, facets=exits)
        path = system.with_(input_dim=path_dim, first_overlap=0.1, horizon=30.0, records=16)
        one = {"input_dim": (path_dim,)}
        yield Curve("theory", overlap_flow, path, one, facets=paths)
        yield Curve("SGD", overlap_chain, path, one, seeds=seeds, batch_seeds=True, facets=paths)


@study(
    "sgd-batch-size",
    title="Batches of up to 64 save steps at no cost in samples; of 4096 they need twice as many",
    source="Arnaboldi et al. 2024 (batch size and time complexity)",
    gallery={"batches": (1, 4, 16, 64, 256, 1024, 4096), "seeds": 1000},
    full={"dim": 128, "batches": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048), "seeds": 256},
    seconds=(60, 1200),
    observables=("exit_samples", "exit_steps"),
    explained=(
        "The theory assumes small steps and the gradient noise of single examples. At d = 64 the "
        "first assumption makes predicted times 10 % too short, as in sgd-exit-times below d = "
        "100. The second fails for batches of about d^(3/2) and more, which need more examples."
    ),
    panels=lambda p: [
        Panel(
            "batch_size",
            y,
            log=log,
            ylabel=f"{unit} until $|m| = 1/2$",
            ylim=low,
            reference=[vertical(p["dim"] ** 1.5, "$d^{3/2}$")],
        )
        for y, unit, log, low in (
            ("exit_samples", "samples $n$", "x", (0, None)),
            ("exit_steps", "steps $n/b$", "xy", None),
        )
    ],
    caption=(
        r"Information exponent 3, $d$ = {dim}, learning rate $0.5\,b/\sqrt{{d}}$ for batches of "
        r"$b$. The theory assumes the gradient noise of single samples at every batch size, which "
        r"holds for $b$ well below $d^{{3/2}}$."
    ),
)
def sgd_batch_size(
    dim: int = 64, batches: tuple[int, ...] = (1, 8, 64, 512, 4096), seeds: int = 96
) -> Iterator[Curve]:
    formula = "He3(z)/sqrt(6)"
    system = SphericalSGD(
        input_dim=dim,
        target=formula,
        student=formula,
        learning_rate=0.5,
        rate_exponent=0.5,
        gradient="sum",
        horizon=60.0 * dim,
    )
    over = {"batch_size": batches}
    yield Curve("first-passage theory", exit_time, system, over)
    yield Curve("SGD", exit_chain, system, over, seeds=seeds, batch_seeds=True)
