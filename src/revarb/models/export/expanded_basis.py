"""A radial basis with its squares expanded, for tools that are fastest at products of matrices."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.simulation.formulas import RadialBasis


class ExpandedBasis(NamedTuple):
    """y = Σ_m exp(products_m · d + offsets_m − Σ half_w · d²) · weights_m with d = x − centre.

    One product has all distances. Around the centre of the inducing inputs that costs few digits.
    """

    centre: Float64[np.ndarray, " D"]
    products: Float64[np.ndarray, "M D"]
    offsets: Float64[np.ndarray, " M"]
    half_w: Float64[np.ndarray, " D"]
    weights: Float64[np.ndarray, "M Dy"]


def expand_basis(formula: RadialBasis) -> ExpandedBasis:
    """The radial basis of a layer, without its affine part."""
    centre, half_w = formula.zeta.mean(0), 0.5 * formula.w
    zeta = formula.zeta - centre
    return ExpandedBasis(centre, zeta * formula.w, -(zeta**2) @ half_w, half_w, formula.variance * formula.beta)
