%inputs /* Put the inputs of a sample behind those before it, and drop the oldest ones. */
%inputs static void remember(${real} *recent, const ${real} *u)
%inputs {
%past     int i;
%past
%past     for (i = 0; i < ${past}; i++)
%past         recent[i] = recent[i + ${inputs}];
%inputs     copy(${inputs}, u, recent + ${past});
%inputs }
%inputs
%inputs /* Past inputs of a cold start. */
%inputs ${u_start}
%inputs
void ${name}_init(${name}_state *state)
{
%inputs     int row;
%inputs
    fill(${states}, state->x);
%inputs     for (row = 0; row <= ${past_inputs}; row++)
%inputs         copy(${inputs}, u_start, state->u + row * ${inputs});
    observe(state->x, state->y);
    state->rows = 0;
}

void ${name}_set_state(${name}_state *state, const ${real} *vector)
{
    copy(${states}, vector, state->x);
%inputs     fill(${inputs}, state->u); /* the row that the next step drops */
%inputs     copy(${past}, vector + ${states}, state->u + ${inputs});
    observe(state->x, state->y);
    state->rows = ${past_inputs} + 1;
}

void ${name}_get_state(const ${name}_state *state, ${real} *vector)
{
    copy(${states}, state->x, vector);
%inputs     copy(${past}, state->u + ${inputs}, vector + ${states});
}

void ${name}_step(${name}_state *state, const ${real} *u, ${real} *y)
{
%inputs     remember(state->u, u);
%!inputs     (void) u;
${advance}
    observe(state->x, state->y);
    if (state->rows <= ${past_inputs})
        state->rows++;
    copy(${outputs}, state->y, y);
}

void ${name}_output(const ${name}_state *state, ${real} *y)
{
    copy(${outputs}, state->y, y);
}
