"""Random patterns and a perceptron with real or with binary couplings."""

from orderparam.core.system import System, parameter

# ------------------------------------------------------------------------------------------------
# Random patterns and a perceptron with real couplings.


class SphericalPatterns(System):
    r"""Random patterns and a perceptron with real couplings.

    $p = \alpha N$ patterns x of N = `input_dim` inputs have outputs $y = \pm 1$ ($\alpha$ =
    `load`). Couplings J store a pattern if its stability reaches the margin $\kappa$ = `margin`:

    $$ y\, \frac{J \cdot x}{|J|} \ge \kappa $$

    Outputs have mean b = `bias`. Inputs are Gaussian with mean b and variance $1 - b^2$. For large
    N inputs +-1 with mean b give the same results.

    Source: Gardner (1988).
    """

    load: float = parameter("patterns per input alpha = p/N", above=0, default=1.0)
    margin: float = parameter("least stability kappa of a stored pattern", default=0.0)
    bias: float = parameter("mean b of inputs and outputs", minimum=0, below=1, default=0.0)
    input_dim: float = parameter("number N of inputs", minimum=2, integer=True, default=50)


class ThermalPatterns(System):
    r"""Random patterns and a perceptron with real couplings in equilibrium, with the number of
    errors as its energy.

    Couplings J with |J| = 1 have a probability proportional to $e^{-E/T}$ on the sphere, where E is
    the number of the $p = \alpha N$ patterns with

    $$ y\, J \cdot x < \kappa $$

    with $\alpha$ = `load`, $\kappa$ = `margin`, T = `temperature` and N = `input_dim`; inputs are
    Gaussian with variance 1.

    Source: Gardner, Derrida (1988).
    """

    load: float = parameter("patterns per input alpha = p/N", above=0, default=4.0)
    temperature: float = parameter("temperature T, in errors", above=0, default=0.5)
    margin: float = parameter("least stability kappa of a stored pattern", default=0.0)
    input_dim: float = parameter("number N of inputs", minimum=2, integer=True, default=20)


# ------------------------------------------------------------------------------------------------
# Random patterns and a perceptron with binary couplings.


class BinaryPatterns(System):
    r"""Random patterns and a perceptron with binary couplings.

    $p = \alpha N$ patterns x of N = `input_dim` inputs $\pm 1$ ($\alpha$ = `load`) are stored by
    couplings $J_i = \pm 1$ if

    $$ y\, \frac{J \cdot x}{\sqrt N} \ge \kappa $$

    with $\kappa$ = `margin`. The outputs y are +-1 with equal probability and are absorbed into the
    patterns.

    Source: Krauth, Mézard (1989).
    """

    load: float = parameter("patterns per input alpha = p/N", above=0, default=0.5)
    margin: float = parameter("least stability kappa of a stored pattern", default=0.0)
    input_dim: float = parameter("number N of inputs", minimum=2, integer=True, default=19)
