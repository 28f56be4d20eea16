"""One member of a model in C: its layers, its window of inputs, its step and its outputs.

The code uses `fill`, `copy` and `shift` of c_source.py. The last inputs come in raw units, one row per sample, oldest
first; the last row is the sample of the step.
"""

from dataclasses import dataclass

from revarb.models.export.c_layers import write_layer
from revarb.models.export.c_tables import CReal
from revarb.models.export.step_model import StepMember


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
