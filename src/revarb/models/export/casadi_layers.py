"""Layers in CasADi's operations on vectors: regressors in, values out, all z-scored."""

from types import ModuleType
from typing import Any

from revarb.errors import InputError
from revarb.models.export.expanded_basis import ExpandedBasis, expand_basis
from revarb.simulation.formulas import Affine, Formula, RadialBasis

Expression = Any  # a column of casadi.MX


def import_casadi() -> ModuleType:
    """CasADi, which is optional."""
    try:
        import casadi
    except ImportError as error:
        raise InputError(f'a CasADi function needs {error.name}; pip install "revarb[casadi]"') from None
    return casadi


def evaluate(formula: Formula, x: Expression) -> Expression:
    """Value of a layer."""
    ca = import_casadi()
    if isinstance(formula, Affine):
        return ca.mtimes(ca.DM(formula.coefficients.T), x) + ca.DM(formula.offset)
    if isinstance(formula, RadialBasis):
        expanded = expand_basis(formula)
        basis = ca.mtimes(ca.DM(expanded.weights.T), evaluate_basis(expanded, x))
        return basis if formula.affine is None else basis + evaluate(formula.affine, x)
    return evaluate(formula.readout, ca.tanh(evaluate(formula.hidden, x)))


def evaluate_basis(basis: ExpandedBasis, x: Expression) -> Expression:
    """Radial basis functions at the regressors, without their weights; with expanded squares a Hessian is faster."""
    ca = import_casadi()
    away = x - ca.DM(basis.centre)
    exponents = ca.mtimes(ca.DM(basis.products), away) + ca.DM(basis.offsets) - ca.dot(away * ca.DM(basis.half_w), away)
    return ca.exp(exponents)
