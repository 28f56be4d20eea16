/* The ranges in training of the states, z-scored, and of the inputs of a sample, raw units. */
${low}
${high}
%inputs ${input_low}
%inputs ${input_high}

/* Keep the new values of a window inside: in their range, or no further out than the window before them is. */
static void hold(int count, int lags, const ${real} *low, const ${real} *high, const ${real} *before, ${real} *window)
{
    int i, j;

    for (j = 0; j < count; j++) {
        ${real} least = low[j], most = high[j];
        for (i = 0; i < lags; i++) {
            least = before[i * count + j] < least ? before[i * count + j] : least;
            most = before[i * count + j] > most ? before[i * count + j] : most;
        }
        window[j] = window[j] < least ? least : window[j] > most ? most : window[j];
    }
}

/* Both runs from the states x. */
static void begin_beyond(${name}_beyond *beyond, const ${real} *x)
{
    copy(${states}, x, beyond->free);
    copy(${states}, x, beyond->held);
    fill(${outputs}, beyond->doubt);
}

/* Advance both runs, given the last inputs; the doubt grows with the distance of their outputs. */
static void advance_beyond(${name}_beyond *beyond, const ${real} *u)
{
    ${real} before[${states}], y[${outputs}];
    int j;
%inputs     ${real} inside[(${past_inputs} + 1) * ${inputs}];
%inputs     int i;
%inputs
%inputs     for (i = 0; i <= ${past_inputs}; i++)
%inputs         for (j = 0; j < ${inputs}; j++) {
%inputs             const ${real} value = u[i * ${inputs} + j];
%inputs             inside[i * ${inputs} + j] =
%inputs                 value < input_low[j] ? input_low[j] : value > input_high[j] ? input_high[j] : value;
%inputs         }
%!inputs     (void) u;
    copy(${states}, beyond->held, before);
    ${advance_free}
    ${advance_held}
    observe(beyond->free, beyond->doubt);
    observe(beyond->held, y);
    for (j = 0; j < ${outputs}; j++)
        beyond->doubt[j] = ${share} * (beyond->doubt[j] - y[j]);
${hold}
}

