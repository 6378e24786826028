"""Deep linear networks in time: the systems.

All three learn a linear map from whitened inputs, E x x^T = 1, by gradient flow on the loss |Sigma
- W_L ... W_1|^2/2 with Sigma = E y x^T. The systems differ in what is known of the layers at the
start.
"""

import jax
import numpy as np
from jaxtyping import Array, Float

from orderparam.core.system import System, parameter, structure


class LinearModes(System):
    r"""A linear network with one hidden layer, described by the modes of its target.

    The network $f = W_2 W_1 x$ learns $\Sigma = \sum_k s_k u_k v_k^T$. Mode k has the output $o_k =
    u_k^T W_2 W_1 v_k$ and the tangent kernel $\kappa_k = v_k^T W_1^T W_1 v_k + u_k^T W_2 W_2^T
    u_k$. As long as modes do not mix, $\kappa_k^2 - 4 o_k^2 = c^2$ is conserved.

    From two kinds of starts the modes do not mix. Wide random layers with entries of variance a/N
    and b/N and N = `width` hidden units have $o_k = 0$ and $c = a + b$ as $N \to \infty$: training
    is lazy at large c and rich at small c. Layers along the modes of the target have $c = 0$ if
    they are balanced. An experiment draws wide random layers, with as many inputs and outputs as
    modes, and refuses any `start_output`.
    """

    strengths: Float[Array, "mode"] = parameter("singular values s_k of the target", above=0)
    kernel_start: float = parameter(
        "conserved scale c: tangent kernel of every mode at a start without output", minimum=0
    )
    duration: float = parameter("time t at the last record, of the mean loss", above=0)
    start_output: float = parameter("output o of every mode at the start", minimum=0, default=0.0)
    readout_share: float = parameter(
        "share b/(a + b) of the read-outs in the kernel at the start of an experiment",
        minimum=0,
        maximum=1,
        default=0.5,
    )
    width: int = parameter("hidden units N of an experiment", minimum=1, integer=True, default=256)
    records: int = structure("number of records at equal intervals", minimum=1, default=40)

    def __check_init__(self) -> None:
        start = (self.kernel_start, self.start_output)
        if any(isinstance(number, jax.core.Tracer) for number in start):
            return
        if np.any((np.asarray(start[0]) == 0) & (np.asarray(start[1]) == 0)):
            raise ValueError(
                "LinearModes.kernel_start = 0 with start_output = 0: such a network never moves; "
                "one of them must be above 0"
            )


class DeepModes(System):
    r"""A linear network of any depth whose layers start along the modes of its target.

    Every layer has the same singular value in a mode, $o_k = a_k^L$ for `depth` L, and

    $$ \frac{do_k}{dt} = L\, o_k^{2 - 2/L} (s_k - o_k) $$

    An experiment adds to each entry of each layer a Gaussian of standard deviation
    `misalignment` * $a/\sqrt d$, where d is the number of modes; the theory is for `misalignment`
    0.
    """

    strengths: Float[Array, "mode"] = parameter("singular values s_k of the target", above=0)
    start_output: float = parameter("output o of every mode at the start", above=0)
    duration: float = parameter("time t at the last record, of the mean loss", above=0)
    misalignment: float = parameter(
        "size of the random part of the layers in an experiment, relative to the other",
        minimum=0,
        default=0.0,
    )
    depth: int = structure("number L of layers of weights", minimum=2, default=2)
    records: int = structure("number of records at equal intervals", minimum=1, default=40)


class LinearNetwork(System):
    r"""A linear network with one hidden layer and given weights at the start.

    $$ \frac{dW_1}{dt} = W_2^T (\Sigma - W_2 W_1), \qquad
        \frac{dW_2}{dt} = (\Sigma - W_2 W_1) W_1^T $$

    The matrix $W_2^T W_2 - W_1 W_1^T$ is conserved. The start is balanced if this matrix is
    $\lambda$ times the identity. `ValueError` is raised for shapes that do not fit.
    """

    target: Float[Array, "output input"] = parameter("Sigma = E y x^T")
    first: Float[Array, "unit input"] = parameter("W_1 at the start")
    readout: Float[Array, "output unit"] = parameter("W_2 at the start")
    duration: float = parameter("time t at the last record, of the mean loss", above=0)
    records: int = structure("number of records at equal intervals", minimum=1, default=40)
