"""Real finite networks in every scaling; the same architecture object gives the kernel of the
infinite-width limit."""

from orderparam.networks.architecture import Architecture, Network
from orderparam.networks.attention import Attention, transformer
from orderparam.networks.composition import Serial, Sum
from orderparam.networks.convolution import Convolution, UnsharedConvolution
from orderparam.networks.convolutional import convolutional
from orderparam.networks.dense import Dense, Nonlinearity
from orderparam.networks.fully_connected import fully_connected, parse
from orderparam.networks.normalization import LayerNorm
from orderparam.networks.pooling import AveragePool, Flatten, GlobalAveragePool
from orderparam.networks.random_kernels import RandomKernels, empirical_ntk, random_kernels
