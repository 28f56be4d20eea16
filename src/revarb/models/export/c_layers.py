"""Layers as C functions: void NAME(const real *x, real *f), z-scored regressors in, z-scored values out.

They use `fill` and `copy` of c_source.py.
"""

import numpy as np
from jaxtyping import Float64

from revarb.models.export.c_tables import CReal
from revarb.simulation.formulas import Affine, Formula, RadialBasis, TanhNetwork


def write_layer(name: str, title: str, formula: Formula, real: CReal) -> str:
    """The tables of a layer, and the function that evaluates it."""
    if isinstance(formula, RadialBasis):
        return _write_radial_basis(name, title, formula, real)
    if isinstance(formula, TanhNetwork):
        return _write_network(name, title, formula, real)
    return f"/* {title}: linear in {formula.regressors} regressors. */\n{_write_affine(name, formula, real)}"


def _write_radial_basis(name: str, title: str, formula: RadialBasis, real: CReal) -> str:
    centres, tail = len(formula.zeta), "" if formula.affine is None else " and a linear part"
    # In single precision exp(−s) − 1: where a kernel is wide, s is small, and large weights of opposite signs would
    # multiply the rounding of values near 1. The sum of the weights is in the offset then.
    small = real.base == "float"
    first, begin = _write_begin(name, formula, _sum_weights(formula) if small else None, real)
    return f"""/* {title}: {centres} basis functions of {formula.regressors} regressors{tail}.
   A row of {name}_centres is one scaled regressor of all of them, a row of {name}_weights all outputs of one. */
{_write_basis_tables(name, formula, real)}
{first}
static void {name}(const {real.name} *x, {real.name} *f)
{{
    {real.name} exponent[{centres}];
    int d, j, m;

    fill({centres}, exponent);
    for (d = 0; d < {formula.regressors}; d++) {{
        const {real.name} at = x[d] * {name}_scale[d];
        for (m = 0; m < {centres}; m++) {{
            const {real.name} distance = at - {name}_centres[d][m];
            exponent[m] += distance * distance;
        }}
    }}
    {begin}
    for (m = 0; m < {centres}; m++) {{
        const {real.name} value = {"expm1f" if small else "exp"}(-exponent[m]);
        for (j = 0; j < {formula.outputs}; j++)
            f[j] += {name}_weights[m][j] * value;
    }}
}}
"""


def _write_basis_tables(name: str, formula: RadialBasis, real: CReal) -> str:
    # With the root of w / 2 in the regressors and in the centres the exponent is a plain sum of squares. The inner loop
    # runs over neighbours in memory, and compilers make vector instructions of it.
    scale = np.sqrt(0.5 * formula.w)
    tables = (
        real.table(f"{name}_scale", scale),
        real.table(f"{name}_centres", (scale * formula.zeta).T),
        real.table(f"{name}_weights", formula.variance * formula.beta),
    )
    return "\n".join(tables)


def _sum_weights(formula: RadialBasis) -> Float64[np.ndarray, " Dy"]:
    return formula.variance * formula.beta.sum(axis=0)


def _write_begin(
    name: str, formula: RadialBasis, added: Float64[np.ndarray, " Dy"] | None, real: CReal
) -> tuple[str, str]:
    # What the sum over the basis functions is added to: definitions, and the statement that sets f to it.
    if formula.affine is not None:
        offset = formula.affine.offset if added is None else formula.affine.offset + added
        affine = Affine(formula.affine.coefficients, offset)
        return f"{_write_affine(f'{name}_linear', affine, real)}", f"{name}_linear(x, f);"
    if added is not None:
        return f"{real.table(f'{name}_offset', added)}\n", f"copy({formula.outputs}, {name}_offset, f);"
    return "", f"fill({formula.outputs}, f);"


def _write_network(name: str, title: str, formula: TanhNetwork, real: CReal) -> str:
    units = formula.hidden.outputs
    return f"""/* {title}: a network of {units} tanh units on {formula.regressors} regressors. */
{_write_affine(f"{name}_hidden", formula.hidden, real)}
{_write_affine(f"{name}_readout", formula.readout, real)}
static void {name}(const {real.name} *x, {real.name} *f)
{{
    {real.name} units[{units}];
    int i;

    {name}_hidden(x, units);
    for (i = 0; i < {units}; i++)
        units[i] = tanh{real.suffix}(units[i]);
    {name}_readout(units, f);
}}
"""


def _write_affine(name: str, affine: Affine, real: CReal) -> str:
    return f"""{real.table(f"{name}_offset", affine.offset)}
{real.table(f"{name}_coefficients", affine.coefficients.T)}

static void {name}(const {real.name} *x, {real.name} *f)
{{
    int d, j;

    for (j = 0; j < {affine.outputs}; j++) {{
        {real.name} sum = {name}_offset[j];
        for (d = 0; d < {affine.regressors}; d++)
            sum += {name}_coefficients[j][d] * x[d];
        f[j] = sum;
    }}
}}
"""
