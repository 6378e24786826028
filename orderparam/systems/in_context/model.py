"""Systems of in-context learning: a layer of linear attention that is trained on regression tasks.

A layer of linear attention sees a context of examples of a linear regression and predicts one more
label. It was trained on many contexts, each about one of k tasks. Does it learn to solve any task
from its context, or does it remember the k tasks?
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter


class LinearAttention(System):
    r"""Linear regression in context by one layer of linear attention, on isotropic tasks.

    A sequence holds $l = \alpha d$ examples $(x_i, y_i)$ and a query $x$: inputs $x \sim N(0,
    1_d/d)$, labels $y = x \cdot w + \epsilon$ with $\epsilon \sim N(0, \rho)$, for the query too.
    Training takes $n = \tau d^2$ sequences, each about one of $k = \kappa d$ tasks $w_j$, drawn
    from the sphere $|w|^2 = d$. If the value vector has only its label component, the layer
    predicts

    $$ \hat y = x^T \Gamma \tilde h, \qquad \tilde h = (h, s), \qquad h = \frac dl \sum_i y_i x_i,
       \qquad s = \frac1l \sum_i y_i^2 $$

    and the d x (d+1) matrix $\Gamma$ minimises $\sum_\mu (y - \hat y)^2 + \frac nd \lambda
    |\Gamma|^2$; a ridge of 0 is the limit of small ridges.

    Conventions: all errors are mean squares against noisy labels, without a factor 1/2, so that
    $\rho$ is the smallest possible error, and the prediction 0 has the error $1 + \rho$. An
    infinite `task_ratio` means that every sequence has its own task.
    """

    context_ratio: float = parameter("examples in a context over dimension, l/d", above=0)
    task_ratio: float = parameter("training tasks over dimension, k/d", above=0, infinite=True)
    sample_ratio: float = parameter(
        "training sequences over squared dimension, n/d^2", above=0, infinite=True
    )
    noise: float = parameter("variance rho of the label noise", minimum=0, default=0.1)
    ridge: float = parameter("ridge lambda", minimum=0, default=0.0)
    test_context_ratio: float | None = parameter(
        "examples in a test context over dimension; None: as in training", above=0, default=None
    )
    test_noise: float | None = parameter(
        "variance of the label noise in tests; None: as in training", minimum=0, default=None
    )
    input_dim: int = parameter(
        "input dimension d of an experiment", minimum=4, integer=True, default=20
    )

    @property
    def task_law(self) -> tuple[Float[Array, "direction"], Float[Array, "direction"]]:
        """Variances of the training tasks and of fresh tasks, each for an equal share of the
        directions."""
        one = jnp.ones(1)
        return one, one

    @property
    def test_law(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Context ratio and variance of the label noise in tests."""
        context = self.context_ratio if self.test_context_ratio is None else self.test_context_ratio
        noise = self.noise if self.test_noise is None else self.test_noise
        return jnp.asarray(context), jnp.asarray(noise)

    def sizes(self) -> tuple[int, int, int, int | None]:
        """Dimension, context length, number of sequences and number of tasks of an experiment;
        None for infinitely many tasks. Each is at least 1.

        Raises:
            ValueError: for infinitely many sequences.
        """
        dimension = self.size("input_dim")
        if math.isinf(float(self.sample_ratio)):
            raise ValueError("sample_ratio = inf: must be finite, to draw sequences")
        context = max(1, round(float(self.context_ratio) * dimension))
        sequences = max(1, round(float(self.sample_ratio) * dimension**2))
        if math.isinf(float(self.task_ratio)):
            return dimension, context, sequences, None
        return dimension, context, sequences, max(1, round(float(self.task_ratio) * dimension))


class StructuredTasks(LinearAttention):
    r"""In-context regression with tasks that are larger along some directions than along others.

    The model is that of `LinearAttention`, with tasks $w = C^{1/2} u$ for $u$ on the sphere $|u|^2
    = d$ and a diagonal covariance $C$. Each of the given variances belongs to an equal share of the
    directions; an experiment at dimension d repeats them, so that d must be a multiple of their
    number. Fresh tasks may have another covariance, diagonal in the same basis. `idg_error` is
    measured on the training tasks themselves.
    """

    task_variances: Float[Array, "direction"] = parameter(
        "variances C of the training tasks, each along an equal share of the directions",
        above=0,
        kw_only=True,
    )
    test_variances: Float[Array, "direction"] = parameter(
        "variances of fresh tasks along the same directions", minimum=0, kw_only=True
    )

    @property
    def task_law(self) -> tuple[Float[Array, "direction"], Float[Array, "direction"]]:
        return self.task_variances, self.test_variances
