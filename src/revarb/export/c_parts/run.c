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
/* The states before a cold run: their mean over the training records. */
${x_start}

%inputs /* Past inputs of a cold start. */
%inputs ${u_start}
%inputs
void ${name}_init(${name}_state *state)
{
%inputs     int row;
%inputs
    copy(${states}, x_start, state->x);
%inputs     for (row = 0; row <= ${past_inputs}; row++)
%inputs         copy(${inputs}, u_start, state->u + row * ${inputs});
    observe(state->x, state->y);
}

void ${name}_set_state(${name}_state *state, const ${real} *vector)
{
    copy(${states}, vector, state->x);
%inputs     fill(${inputs}, state->u); /* the row that the next step drops */
%inputs     copy(${past}, vector + ${states}, state->u + ${inputs});
    observe(state->x, state->y);
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
    copy(${outputs}, state->y, y);
}

void ${name}_output(const ${name}_state *state, ${real} *y)
{
    copy(${outputs}, state->y, y);
}
