"""Standard deviations in C by propagated moments: the joint Gaussian of all states, with its full covariance.

The algorithm is that of simulation/moments.py; c_parts/gaussian_layers.c has it for layers of any size.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.models.export.c_member import CMember
from revarb.models.export.c_program import CProgram, write_function
from revarb.models.export.moment_model import MomentLayer, MomentModel
from revarb.simulation.formulas import RadialBasis


class _PlacedLayer(NamedTuple):
    """A layer of the step, its name in the program, its variances, and how many of its regressors are uncertain."""

    name: str
    basis: RadialBasis
    moments: MomentLayer
    uncertain: int


def _place_layers(program: CProgram, moments: MomentModel) -> list[_PlacedLayer]:
    [own] = program.members
    member = own.member
    formulas = [*member.hidden, *(() if member.output is None else (member.output,))]
    names = [*(f"layer_{number}" for number in range(1, len(member.hidden) + 1)), "readout"]
    sizes = [*(len(places) for places in member.regressors), len(member.windows[-1])]
    return [
        _PlacedLayer(name, basis, layer, size)
        for name, basis, layer, size in zip(names, formulas, moments.layers, sizes, strict=False)
        if isinstance(basis, RadialBasis)
    ]


def write_moments_struct(program: CProgram, moments: MomentModel) -> str:
    """The struct of a run with standard deviations."""
    model, real = program.model, program.real.name
    layers = _place_layers(program, moments)
    regressors, outputs = max(each.uncertain for each in layers), max(each.basis.outputs for each in layers)
    centres = max(len(each.basis.zeta) for each in layers)
    recent = f"\n    {real} u[{(model.past_inputs + 1) * model.inputs}]; /* last inputs, oldest first */"
    return f"""/* Intermediate results of a step with standard deviations. */
typedef struct {{
    {real} mean[{regressors}], cov[{regressors**2}], root[{regressors**2}]; /* of regressors */
    {real} white[{centres * regressors}], known[{centres}], pairs[{centres}], rows[{centres * outputs}];
    {real} f[{outputs}], f_cov[{outputs**2}], left[{outputs}], gain[{regressors * outputs}];
    {real} cross[{model.states * outputs}];
}} {program.name}_work;

/* A run with standard deviations: the joint Gaussian distribution of all states. */
typedef struct {{
    {real} x[{model.states}], cov[{model.states**2}]; /* mean and covariance of the states, z-scored */{recent if model.inputs else ""}
    {real} y[{model.outputs}], std[{model.outputs}]; /* of the last step */
    int cold; /* whether the run started cold */
    int rows; /* steps since the start, counted while they make a difference */
    {program.name}_work work;
}} {program.name}_moments;
"""  # noqa: E501 (the line of the C file is shorter)


def write_moments_code(program: CProgram, moments: MomentModel) -> str:
    """Tables and functions of a run with standard deviations."""
    layers = _place_layers(program, moments)
    parts = (
        _read_part(program),
        *(_write_layer(each, program) for each in layers),
        _write_width(program, moments),
        _write_observe(program),
        _write_starts(program, moments),
        _write_step(program, moments),
    )
    return "\n".join(parts)


def _read_part(program: CProgram) -> str:
    text = (files("revarb.models.export") / "c_parts" / "gaussian_layers.c").read_text(encoding="utf-8")
    return text.replace("REAL", program.real.name).replace("WORK", f"{program.name}_work")


def _write_layer(layer: _PlacedLayer, program: CProgram) -> str:
    name, basis, real = layer.name, layer.basis, program.real
    known = basis.regressors - layer.uncertain
    slopes = f"{name}_linear_coefficients[0], {name}_linear_offset" if basis.affine else "0, 0"
    # The square of the kernel's variance is that of the two kernel values in psi2.
    triangle = np.stack([layer.moments.variance**2 * _pack(each) for each in layer.moments.reduction])
    numbers = ", ".join(real.number(value) for value in (layer.moments.variance, layer.moments.noise))
    return f"""{real.table(f"{name}_reduction", triangle)}
static const gaussian_layer {name}_gaussian = {{
    {len(basis.zeta)}, {layer.uncertain}, {known}, {basis.outputs}, {len(triangle)}, {numbers},
    {name}_scale, {name}_centres[0], {name}_weights[0], {name}_reduction[0], {slopes}
}};
"""


def _pack(matrix: Float64[np.ndarray, "M M"]) -> Float64[np.ndarray, " T"]:
    # The lower triangle, row by row.
    return (0.5 * (matrix + matrix.T))[np.tril_indices(len(matrix))]


def _write_width(program: CProgram, moments: MomentModel) -> str:
    real, edges = program.real, moments.edges
    last = f"return widths[{len(edges)}];"
    search = (
        "int band;",
        "",
        "if (moments->cold)",
        f"    {last}",
        f"for (band = 0; band < {len(edges)}; band++)",
        "    if (moments->rows <= ends[band])",
        "        return widths[band];",
        last,
    )
    tables = [real.table("widths", np.array(moments.factors))]
    if edges:
        tables.append(f"static const int ends[{len(edges)}] = {{{', '.join(map(str, edges))}}};")
    head = f"static {real.name} width(const {program.name}_moments *moments)"
    function = write_function(head, search if edges else ("(void) moments;", last))
    comment = "/* Calibrated factors on the standard deviation, by the number of steps since a measured start. */"
    return "\n".join([comment, *tables, "", function])


def _write_observe(program: CProgram) -> str:
    [own] = program.members
    model, size, window = program.model, program.model.states, own.member.windows[-1]
    begin, outputs = window[0], model.outputs
    if own.member.output is None:
        first = ()
        mean, variance = f"moments->x[{begin} + j]", f"moments->cov[({begin} + j) * {size} + {begin} + j]"
    else:
        first = (
            f"take({size}, moments->x, moments->cov, {begin}, {len(window)}, 0, 0, &moments->work);",
            "predict(&readout_gaussian, 0, &moments->work);",
        )
        mean, variance = "moments->work.f[j]", f"moments->work.f_cov[j * {outputs} + j]"
    lines = (
        "int j;",
        "",
        *first,
        f"for (j = 0; j < {outputs}; j++) {{",
        f"    moments->y[j] = {mean} * y_std[j] + y_mean[j];",
        f"    moments->std[j] = sqrt({variance}) * y_std[j] * width(moments);",
        "}",
    )
    return write_function(f"static void observe_moments({program.name}_moments *moments)", lines)


def _write_starts(program: CProgram, moments: MomentModel) -> str:
    name, model, real = program.name, program.model, program.real.name
    inputs, size, past = model.inputs, model.states, model.past_inputs * model.inputs
    restart = write_function(
        f"static void restart_moments({name}_moments *moments)",
        (
            "int i;",
            "",
            f"fill({size}, moments->x);",
            f"fill({size**2}, moments->cov);",
            f"for (i = 0; i < {size}; i++)",
            f"    moments->cov[i * {size} + i] = 1;",
        ),
    )
    cold = (
        f"for (row = 0; row <= {model.past_inputs}; row++)",
        f"    copy({inputs}, u_start, moments->u + row * {inputs});",
    )
    begin = write_function(
        f"void {name}_init_moments({name}_moments *moments)",
        (*(("int row;", "") if inputs else ()), "restart_moments(moments);", *(cold if inputs else ()),
         "moments->cold = 1;", "moments->rows = 0;", "observe_moments(moments);"),
    )  # fmt: skip
    warm = (f"fill({inputs}, moments->u);", f"copy({past}, vector + {size}, moments->u + {inputs});")
    given = write_function(
        f"void {name}_set_moments({name}_moments *moments, const {real} *vector, const {real} *cov)",
        (f"copy({size}, vector, moments->x);", *(warm if inputs else ()), "if (cov)",
         f"    copy({size**2}, cov, moments->cov);", "else", f"    fill({size**2}, moments->cov);",
         "moments->cold = 0;", "moments->rows = 0;", "observe_moments(moments);"),
    )  # fmt: skip
    return "\n".join((restart, begin, given))


def _write_step(program: CProgram, moments: MomentModel) -> str:
    [own] = program.members
    name, model, real = program.name, program.model, program.real.name
    window = own.member.order.input_lags * model.inputs
    last = max(model.past_inputs, *moments.edges, 0) + 1  # later steps are all alike
    lines = (
        *((f"{real} z[{window}];", "") if window else ()),
        "remember(moments->u, u);" if model.inputs else "(void) u;",
        *((f"if (moments->cold && moments->rows == {own.reset_row})", "    restart_moments(moments);")
          if own.reset_row is not None else ()),
        *(("window(moments->u, z);",) if window else ()),
        *_advance_layers(own, model.states, bool(window)),
        f"if (moments->rows < {last})",
        "    moments->rows++;",
        "observe_moments(moments);",
        f"{name}_output_moments(moments, y, std);",
    )  # fmt: skip
    step = f"void {name}_step_moments({name}_moments *moments, const {real} *u, {real} *y, {real} *std)"
    output = f"void {name}_output_moments(const {name}_moments *moments, {real} *y, {real} *std)"
    copies = (f"copy({model.outputs}, moments->y, y);", f"copy({model.outputs}, moments->std, std);")
    return f"{write_function(step, lines)}\n{write_function(output, copies)}"


def _advance_layers(own: CMember, size: int, with_inputs: bool) -> Sequence[str]:
    windows = own.member.windows
    return [
        f"advance_moments(&layer_{number + 1}_gaussian, {size}, moments->x, moments->cov, {window[0]}, {len(window)}, "
        + (
            f"{windows[number - 1][0]}, {len(windows[number - 1])}, 0"
            if number
            else f"0, 0, {'z' if with_inputs else 0}"
        )
        + ", &moments->work);"
        for number, window in enumerate(windows)
    ]
