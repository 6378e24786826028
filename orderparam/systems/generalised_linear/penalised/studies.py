"""Study of the Lasso: its best penalty, and its distance from the optimal estimator."""

from collections.abc import Iterator

import numpy as np

from orderparam.comparison import Curve, study
from orderparam.plotting import Panel
from orderparam.priors import SparsePrior
from orderparam.systems.generalised_linear.penalised.experiment import fitted_elastic_net
from orderparam.systems.generalised_linear.penalised.model import ElasticNet
from orderparam.systems.generalised_linear.penalised.theory import elastic_net


@study(
    "lasso",
    title="The Lasso follows state evolution at every penalty",
    source="Bayati, Montanari 2012; Donoho, Maleki, Montanari 2011",
    seconds=(30, 600),
    observables=("error", "support", "train_error"),
    gallery={"seeds": 32},
    full={"input_dim": 2000, "seeds": 16, "penalties": tuple(np.geomspace(0.01, 2.0, 12).tolist())},
    columns=2,
    panels=[
        Panel("l1", "error", by="sample_ratio", log="xy"),
        Panel("l1", "support", by="sample_ratio", log="x"),
    ],
    caption=r"""
        Weights of which a share {density} is Gaussian and the others are zero; $n = \alpha d$
        examples, $d$ = {input_dim}, label noise {noise}. The penalty $\lambda_1$ times the sum of
        $|w_i|$ is added to half the sum of squares. Error $\varepsilon$: mean squared error of a
        weight. Lines: state evolution. Marks: the Lasso of scikit-learn on drawn examples.
    """,
)
def lasso(
    penalties: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8),
    sample_ratios: tuple[float, ...] = (0.5, 0.8, 1.5),
    density: float = 0.2,
    noise: float = 0.05,
    input_dim: int = 400,
    seeds: int = 8,
) -> Iterator[Curve]:
    law, fine = SparsePrior(density), {"l1": tuple(np.geomspace(0.01, 2.0, 60).tolist())}
    for ratio in sample_ratios:
        system, facets = ElasticNet(ratio, 0.1, 0.0, noise, law, input_dim), {"sample_ratio": ratio}
        yield Curve("theory", elastic_net, system, fine, facets=facets)
        yield Curve(
            "scikit-learn", fitted_elastic_net, system, {"l1": penalties}, seeds, facets=facets
        )
