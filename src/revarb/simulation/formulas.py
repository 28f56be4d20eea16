"""What a trained layer computes at known regressors, as plain arrays: for programs that run without JAX."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from revarb.gp.layer import Linear
from revarb.gp.posterior import Posterior


class Affine(NamedTuple):
    """y = x · coefficients + offset."""

    coefficients: Float64[np.ndarray, "D Dy"]
    offset: Float64[np.ndarray, " Dy"]

    @property
    def regressors(self) -> int:
        """Number of regressors."""
        return self.coefficients.shape[0]

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.coefficients.shape[1]


class RadialBasis(NamedTuple):
    """y = Σ_m variance · exp(−½ Σ_d w_d (x_d − ζ_md)²) · β_m, plus the affine part if there is one (Eqs. 24 and 45)."""

    zeta: Float64[np.ndarray, "M D"]
    w: Float64[np.ndarray, " D"]
    variance: float
    beta: Float64[np.ndarray, "M Dy"]
    affine: Affine | None

    @property
    def regressors(self) -> int:
        """Number of regressors."""
        return self.zeta.shape[1]

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.beta.shape[1]


class TanhNetwork(NamedTuple):
    """y = readout(tanh(hidden(x)))."""

    hidden: Affine
    readout: Affine

    @property
    def regressors(self) -> int:
        """Number of regressors."""
        return self.hidden.regressors

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.readout.outputs


Formula = Affine | RadialBasis | TanhNetwork


@runtime_checkable
class WithFormula(Protocol):
    """A layer that says itself what it computes."""

    def formula(self) -> Formula:
        """What it computes."""
        ...


def describe_layer(layer: object) -> Formula:
    """The formula of a layer."""
    if isinstance(layer, WithFormula):
        return layer.formula()
    if isinstance(layer, Linear):
        return _describe_linear(layer)
    assert isinstance(layer, Posterior)
    affine = None if layer.linear is None else _describe_linear(layer.linear)
    return RadialBasis(_array(layer.zeta), _array(layer.w), float(layer.variance), _array(layer.beta), affine)


def _describe_linear(layer: Linear) -> Affine:
    return Affine(_array(layer.coefficients), _array(layer.offset))


def _array(values: object) -> Float64[np.ndarray, "..."]:
    return np.asarray(values, dtype=np.float64)
