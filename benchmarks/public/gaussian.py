"""The kernel of one hidden layer of erf units, for peers that have no such kernel of their own."""

WEIGHT, BIAS, TEMPERATURE = 2.0, 0.1, 0.1


def erf_kernel(numpy, products, first, second):  # type: ignore[no-untyped-def]
    """K of products x.x'/d and squares |x|^2/d, in NumPy or a library that is written alike."""
    covariance = BIAS + WEIGHT * products
    one, two = 1 + 2 * (BIAS + WEIGHT * first), 1 + 2 * (BIAS + WEIGHT * second)
    angle = numpy.arcsin(2 * covariance / numpy.sqrt(one * two))
    return BIAS + WEIGHT * 2 / numpy.pi * angle
