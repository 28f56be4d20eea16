"""Standard deviations in C: of propagated moments, or those of the errors of a model with a mean only.

Moments are the joint Gaussian of all states, with its full covariance. The algorithm is that of simulation/moments.py;
c_parts/gaussian_layers.c has it for layers of any size.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError
from revarb.export.c_program import CProgram
from revarb.export.step_model import GaussianLayer, MemberParts, list_gaussian_layers


def write_std(program: CProgram, parts: Sequence[MemberParts]) -> tuple[str, str]:
    """What the header declares and what the source defines."""
    if len(parts) > 1:
        raise InputError(
            f"the standard deviation of an ensemble cannot be exported, only the mean of its {len(parts)} members; "
            "leave it out, or export one of its members"
        )
    [part] = parts
    if part.residual_std is None:
        return _write_moments(program, part, list_gaussian_layers(part))
    table = program.real.table("stds", part.residual_std)
    about = "They are those of the model's errors on held-out data."
    struct = f"""typedef struct {{
    {program.name}_state run;
    int steps; /* since a measured start, counted while they make a difference */
}} {program.name}_moments;
"""
    return (
        program.fill("c_parts/std.h", about=about, struct=struct, cov="cov is not used"),
        "\n" + program.fill("c_parts/held_out_std.c", table=table, rows=len(part.residual_std)),
    )


def _write_moments(program: CProgram, part: MemberParts, layers: Sequence[GaussianLayer]) -> tuple[str, str]:
    if program.base == "float":
        raise InputError("propagated moments need double precision; leave out with_std, or export double")
    about = (
        "The uncertainty of the states is propagated: the means are those of revarb's\n"
        f'   simulate(method="moments") and not exactly those of {program.name}_step.'
    )
    cov = f"cov is the covariance of the {program.model.states} states, row by row, or 0: they are\n   known exactly"
    order = program.model.members[0].order
    known = order.input_lags * program.model.inputs  # regressors of the first layer that are known exactly
    counts = [known, *(0 for _ in layers[1:])]
    struct = program.fill(
        "c_parts/moments.h",
        regressors=max(layer.formula.regressors - count for layer, count in zip(layers, counts, strict=True)),
        centres=max(len(layer.formula.zeta) for layer in layers),
        values=max(layer.formula.outputs for layer in layers),
    )
    names = [f"layer_{number}" for number in range(1, len(part.chain.hidden) + 1)]
    names += [] if part.chain.output is None else ["readout"]
    sections = (
        "",
        program.fill("c_parts/gaussian_layers.c"),
        *(_write_layer(program, *each) for each in zip(names, layers, counts, strict=True)),
        _write_run(program, part, known),
    )
    return program.fill("c_parts/std.h", about=about, struct=struct, cov=cov), "\n".join(sections)


def _write_layer(program: CProgram, name: str, layer: GaussianLayer, known: int) -> str:
    formula, real = layer.formula, program.real
    slopes = f"{name}_linear_coefficients[0], {name}_linear_offset" if formula.affine else "0, 0"
    triangles = np.stack([_pack(each) for each in layer.reductions])
    return f"""{real.table(f"{name}_reduction", triangles)}
static const gaussian_layer {name}_gaussian = {{
    {len(formula.zeta)}, {formula.regressors - known}, {known}, {formula.outputs}, {len(triangles)}, \
{real.number(formula.variance)}, {real.number(layer.noise)},
    {name}_scale, {name}_centres[0], {name}_weights[0], {name}_reduction[0], {slopes}
}};
"""


def _pack(matrix: Float64[np.ndarray, "M M"]) -> Float64[np.ndarray, " T"]:
    # The lower triangle, row by row.
    return (0.5 * (matrix + matrix.T))[np.tril_indices(len(matrix))]


def _write_run(program: CProgram, part: MemberParts, known: int) -> str:
    [own] = program.members
    windows, edges = own.member.windows, part.edges
    below = [f"0, 0, {'z' if known else 0}", *(f"{window[0]}, {len(window)}, 0" for window in windows[:-1])]
    advance = [
        f"    advance_moments(&layer_{number}_gaussian, {program.model.states}, moments->x, moments->cov, {window[0]}, "
        f"{len(window)}, {side}, &moments->work);"
        for number, (window, side) in enumerate(zip(windows, below, strict=True), start=1)
    ]
    flags = {"edges": edges, "readout": part.chain.output, "known": known, "reset": own.reset_row}
    return program.fill(
        "c_parts/moments.c",
        [name for name, value in flags.items() if value],
        widths=program.real.table("widths", np.array(part.factors)),
        edges=len(edges),
        ends=", ".join(map(str, edges)),
        begin=windows[-1][0],
        window=len(windows[-1]),
        known=known,
        reset_row=own.reset_row,
        advance="\n".join(advance),
        last_row=max(program.model.past_inputs, *edges, 0) + 1,  # later steps are all alike
    )
