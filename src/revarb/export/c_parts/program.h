/* One step of ${what}, written by revarb ${version}.

   Sampling interval: ${dt}. Inputs and outputs are in the units of the training data.
   Call ${name}_init once, then ${name}_step once per sample with the inputs of that sample:

       #include ${header_file}

       static ${name}_state state;
%inputs        ${name}_real u[${macro}_INPUTS], y[${macro}_OUTPUTS];
%!inputs        ${name}_real y[${macro}_OUTPUTS];

       ${name}_init(&state);
%inputs        for (;;) { ... ${name}_step(&state, u, y); ... }
%!inputs        for (;;) { ... ${name}_step(&state, 0, y); ... }

   All that changes is in the struct ${name}_state: several of them run independently of each other, and a copy can be
   set aside and returned to. Nothing is checked: one input that is not a finite number spoils all states after it. */

#ifndef REVARB_${macro}_H
#define REVARB_${macro}_H

#ifdef __cplusplus
extern "C" {
#endif

#define ${macro}_EXPORT ${mark} /* the same in header and source */
#define ${macro}_INPUTS ${inputs}
#define ${macro}_OUTPUTS ${outputs}
#define ${macro}_STATES ${state_size} /* size of the vector of ${name}_set_state */
#define ${macro}_DT ${dt} /* sampling interval */

${places}typedef ${base} ${real};

/* A run. ${name}_init or ${name}_set_state starts it. */
typedef struct {
    ${real} x[${states}]; /* states, z-scored */
%inputs     ${real} u[(${past_inputs} + 1) * ${inputs}]; /* last inputs, oldest first */
    ${real} y[${outputs}]; /* outputs of the last step */
} ${name}_state;

/* Start without any measurement: states and past inputs at their mean in training, as in revarb's
   simulate(start="cold"). */
void ${name}_init(${name}_state *state);

/* Start at a vector of ${macro}_STATES numbers, as model.step_state(start) gives it in Python: the states of all
   layers, z-scored, newest first; then the last ${past_inputs} sample(s) of all inputs, oldest first. */
void ${name}_set_state(${name}_state *state, const ${real} *vector);

/* The vector of a run, for ${name}_set_state. */
void ${name}_get_state(const ${name}_state *state, ${real} *vector);

/* Advance by one sample with its inputs u; y becomes the outputs of that sample. */
void ${name}_step(${name}_state *state, const ${real} *u, ${real} *y);

/* The outputs of the last step; before the first one those of the start. */
void ${name}_output(const ${name}_state *state, ${real} *y);
${std}
#ifdef __cplusplus
}
#endif

#endif
