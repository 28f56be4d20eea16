"""One member of a model in C: its layers, its window of inputs, its step and its outputs.

A layer is a function void NAME(const real *x, real *f), z-scored regressors in, z-scored values out. The last inputs
come in raw units, one row per sample, oldest first; the last row is the sample of the step. The code uses `fill`,
`copy` and `shift` of c_source.py.
"""

from dataclasses import dataclass

import numpy as np

from revarb.export.c_text import CReal
from revarb.export.step_model import StepMember
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
    # With the root of w / 2 in the regressors and in the centres the exponent is a plain sum of squares. The inner loop
    # runs over neighbours in memory, and compilers make vector instructions of it.
    scale = np.sqrt(0.5 * formula.w)
    tables = "\n".join([
        real.table(f"{name}_scale", scale),
        real.table(f"{name}_centres", (scale * formula.zeta).T),
        real.table(f"{name}_weights", formula.variance * formula.beta),
    ])  # fmt: skip
    first, begin = _write_begin(name, formula, real, small)
    return f"""/* {title}: {centres} basis functions of {formula.regressors} regressors{tail}.
   A row of {name}_centres is one scaled regressor of all of them, a row of {name}_weights all outputs of one. */
{tables}
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


def _write_begin(name: str, formula: RadialBasis, real: CReal, add_weights: bool) -> tuple[str, str]:
    # What the sum over the basis functions is added to: definitions, and the statement that sets f to it.
    total = formula.variance * formula.beta.sum(axis=0)
    if formula.affine is not None:
        affine = formula.affine
        if add_weights:
            affine = affine._replace(offset=affine.offset + total)
        return _write_affine(f"{name}_linear", affine, real), f"{name}_linear(x, f);"
    if add_weights:
        return f"{real.table(f'{name}_offset', total)}\n", f"copy({formula.outputs}, {name}_offset, f);"
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


@dataclass(frozen=True)
class CMember:
    """A member, what its functions are called, and where its states are in the vector of all of them."""

    member: StepMember
    tag: str  # begins the names of its functions and tables
    title: str  # begins comments
    offset: int  # of its states
    past_inputs: int  # of the model, which may be more than this member needs
    real: CReal

    @property
    def inputs(self) -> int:
        """Number of inputs that the member uses."""
        return len(self.member.scaling.u_mean) if self.member.order.input_lags else 0

    @property
    def reset_row(self) -> int | None:
        """The row at which a cold run starts again; None: there is no such row."""
        return self.member.order.reach or None

    def call_advance(self) -> str:
        """The call that advances its states."""
        recent = ", state->u" if self.inputs else ""
        return f"{self.tag}advance(state->x + {self.offset}{recent});"

    def write(self) -> str:
        """All of its tables and functions."""
        parts = [*self._write_layers(), *([self._write_window()] if self.inputs else [])]
        return "\n".join([*parts, self._write_advance(), self._write_observe()])

    def _write_layers(self) -> list[str]:
        layers = [
            write_layer(f"{self.tag}layer_{number}", f"{self.title}Layer {number}", formula, self.real)
            for number, formula in enumerate(self.member.hidden, start=1)
        ]
        if self.member.output is None:
            return layers
        return [*layers, write_layer(f"{self.tag}readout", f"{self.title}Output layer", self.member.output, self.real)]

    def _write_window(self) -> str:
        scaling, order, tag, real = self.member.scaling, self.member.order, self.tag, self.real
        newest = self.past_inputs - order.input_delay
        return f"""/* {self.title}Mean and standard deviation of the inputs in training, which z-scores refer to. */
{real.table(f"{tag}u_mean", scaling.u_mean)}
{real.table(f"{tag}u_std", scaling.u_std)}

/* {self.title}The {order.input_lags} inputs that the step uses, z-scored, newest first; the newest is {order.input_delay} sample(s) old. */
static void {tag}window(const {real.name} *u, {real.name} *z)
{{
    int age, j;

    for (age = 0; age < {order.input_lags}; age++)
        for (j = 0; j < {self.inputs}; j++)
            z[age * {self.inputs} + j] = (u[({newest} - age) * {self.inputs} + j] - {tag}u_mean[j]) / {tag}u_std[j];
}}
"""  # noqa: E501 (a comment of the C file)

    def _write_advance(self) -> str:
        member, real = self.member, self.real.name
        recent = f", const {real} *u" if self.inputs else ""
        lines = [line for number in range(len(member.hidden)) for line in self._advance_layer(number)]
        body = "\n".join(f"    {line}" for line in lines)
        return f"""/* {self.title}One step of the states x, layer by layer. */
static void {self.tag}advance({real} *x{recent})
{{
    {real} regressors[{max(layer.regressors for layer in member.hidden)}];
    {real} f[{max(member.latent_dims)}];

{body}
}}
"""

    def _advance_layer(self, number: int) -> list[str]:
        window, dim = self.member.windows[number], self.member.latent_dims[number]
        own = f"copy({len(window)}, x + {window[0]}, regressors);"
        if number > 0:
            below = self.member.windows[number - 1]
            side = [f"copy({len(below)}, x + {below[0]}, regressors + {len(window)});"]
        else:
            side = [f"{self.tag}window(u, regressors + {len(window)});"] if self.inputs else []
        return [
            own,
            *side,
            f"{self.tag}layer_{number + 1}(regressors, f);",
            f"shift({len(window)}, x + {window[0]}, {dim}, f);",
        ]

    def _write_observe(self) -> str:
        member, tag, real = self.member, self.tag, self.real
        begin, outputs = member.windows[-1][0], len(member.scaling.y_mean)
        newest = f"copy({outputs}, x + {begin}, y);" if member.output is None else f"{tag}readout(x + {begin}, y);"
        return f"""/* {self.title}Mean and standard deviation of the outputs in training. */
{real.table(f"{tag}y_mean", member.scaling.y_mean)}
{real.table(f"{tag}y_std", member.scaling.y_std)}

/* {self.title}The outputs at the states x, raw units. */
static void {tag}observe(const {real.name} *x, {real.name} *y)
{{
    int j;

    {newest}
    for (j = 0; j < {outputs}; j++)
        y[j] = y[j] * {tag}y_std[j] + {tag}y_mean[j];
}}
"""
