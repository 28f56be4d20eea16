"""Standard deviations in C: declarations for every model, and the code of models with a mean only."""

from revarb.models.export.c_moments import write_moments_code, write_moments_struct
from revarb.models.export.c_program import CProgram, write_function
from revarb.models.export.moment_model import MomentModel, ResidualModel


def write_std_declarations(program: CProgram) -> str:
    """What the header declares; nothing without standard deviations."""
    if program.std is None:
        return ""
    name, real, states = program.name, program.real.name, program.model.states
    struct, cov = _write_residual_struct(program), "cov is not used"
    if isinstance(program.std, MomentModel):
        struct = write_moments_struct(program, program.std)
        cov = f"cov is the covariance of the {states} states, row by row, or 0: they are\n   known exactly"
    return f"""
/* With standard deviations. {_describe_std(program)} */
{struct}
/* As {name}_init, {name}_set_state, {name}_step and {name}_output; {cov}. */
void {name}_init_moments({name}_moments *moments);
void {name}_set_moments({name}_moments *moments, const {real} *vector, const {real} *cov);
void {name}_step_moments({name}_moments *moments, const {real} *u, {real} *y, {real} *std);
void {name}_output_moments(const {name}_moments *moments, {real} *y, {real} *std);
"""


def _describe_std(program: CProgram) -> str:
    if isinstance(program.std, MomentModel):
        return (
            f"The uncertainty of the states is propagated: the means are those of revarb's\n"
            f'   simulate(method="moments") and not exactly those of {program.name}_step.'
        )
    return "They are those of the model's errors on held-out data."


def write_std_code(program: CProgram) -> str:
    """What the source defines; nothing without standard deviations."""
    if program.std is None:
        return ""
    if isinstance(program.std, MomentModel):
        return f"\n{write_moments_code(program, program.std)}"
    return f"\n{_write_residual_code(program, program.std)}"


def _write_residual_struct(program: CProgram) -> str:
    return f"""typedef struct {{
    {program.name}_state run;
    int steps; /* since a measured start, counted while they make a difference */
}} {program.name}_moments;
"""


def _write_residual_code(program: CProgram, std: ResidualModel) -> str:
    name, real, last = program.name, program.real, len(std.std) - 1
    functions = (
        write_function(
            f"void {name}_init_moments({name}_moments *moments)",
            (f"{name}_init(&moments->run);", f"moments->steps = {last + 1};"),
        ),
        write_function(
            f"void {name}_set_moments({name}_moments *moments, const {real.name} *vector, const {real.name} *cov)",
            ("(void) cov;", f"{name}_set_state(&moments->run, vector);", "moments->steps = 0;"),
        ),
        write_function(
            f"void {name}_step_moments({name}_moments *moments, const {real.name} *u, {real.name} *y, "
            f"{real.name} *std)",
            (f"{name}_step(&moments->run, u, y);", f"if (moments->steps <= {last})", "    moments->steps++;",
             f"{name}_output_moments(moments, y, std);"),
        ),
        write_function(
            f"void {name}_output_moments(const {name}_moments *moments, {real.name} *y, {real.name} *std)",
            (f"{name}_output(&moments->run, y);",
             f"copy({program.model.outputs}, stds[moments->steps ? moments->steps - 1 : 0], std);"),
        ),
    )  # fmt: skip
    table = (
        "/* Standard deviations by the number of steps since a measured start; the last row is that of cold runs. */"
    )
    return "\n".join([table, real.table("stds", std.std), "", *functions])
