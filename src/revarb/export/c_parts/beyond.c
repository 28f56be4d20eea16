/* The ranges in training of the states, z-scored, and of the inputs of a sample, raw units. */
${low}
${high}
%inputs ${input_low}
%inputs ${input_high}

/* Keep the new values of a window from going beyond an end, or further out than the window before them is: from rising
   with the sign 1, from falling with -1. */
static void hold(${real} sign, int count, int lags, const ${real} *end, const ${real} *before, ${real} *window)
{
    int i, j;

    for (j = 0; j < count; j++) {
        ${real} most = end[j];
        for (i = 0; i < lags; i++)
            most = sign * before[i * count + j] > sign * most ? before[i * count + j] : most;
        window[j] = sign * window[j] > sign * most ? most : window[j];
    }
}

/* All runs from the states x. */
static void begin_beyond(${name}_beyond *beyond, const ${real} *x)
{
    copy(${states}, x, beyond->free);
    copy(${states}, x, beyond->raised);
    copy(${states}, x, beyond->lowered);
    fill(${outputs}, beyond->doubt);
}

/* Advance all runs, given the last inputs; the doubt grows with the distances of their outputs. */
static void advance_beyond(${name}_beyond *beyond, const ${real} *u)
{
    ${real} before[${states}], free[${outputs}], raised[${outputs}], lowered[${outputs}];
    int j;
%inputs     ${real} inside[(${past_inputs} + 1) * ${inputs}];
%inputs     int i;
%inputs
%!inputs     (void) u;
    ${advance_free}
    observe(beyond->free, free);

%inputs     for (i = 0; i <= ${past_inputs}; i++)
%inputs         for (j = 0; j < ${inputs}; j++)
%inputs             inside[i * ${inputs} + j] = u[i * ${inputs} + j] < input_low[j] ? input_low[j] : u[i * ${inputs} + j];
    copy(${states}, beyond->raised, before);
    ${advance_raised}
    observe(beyond->raised, raised);
${hold_raised}

%inputs     for (i = 0; i <= ${past_inputs}; i++)
%inputs         for (j = 0; j < ${inputs}; j++)
%inputs             inside[i * ${inputs} + j] = u[i * ${inputs} + j] > input_high[j] ? input_high[j] : u[i * ${inputs} + j];
    copy(${states}, beyond->lowered, before);
    ${advance_lowered}
    observe(beyond->lowered, lowered);
${hold_lowered}

    for (j = 0; j < ${outputs}; j++)
        beyond->doubt[j] = ${share} * ${hypot}(free[j] - raised[j], free[j] - lowered[j]);
}

