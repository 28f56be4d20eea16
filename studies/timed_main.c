/* Around an exported C program named "model", whose header is included by the compiler: see timed_exports.py. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

/* Arguments: rows, rows of a pass, passes. Inputs as doubles on the standard input; the outputs of a cold run, and then
   the microseconds per step of the fastest pass, as doubles on the standard output. */
int main(int argc, char **argv)
{
    int rows = atoi(argv[argc - 3]), timed = atoi(argv[argc - 2]), passes = atoi(argv[argc - 1]), row, pass, i;
    double *numbers = malloc(sizeof(double) * rows * MODEL_INPUTS), best = 1e300, began, result;
    model_real *u = malloc(sizeof(model_real) * rows * MODEL_INPUTS), y[MODEL_OUTPUTS];
    static model_state state;

    if (fread(numbers, sizeof(double), rows * MODEL_INPUTS, stdin) != (size_t) (rows * MODEL_INPUTS))
        return 2;
    for (i = 0; i < rows * MODEL_INPUTS; i++)
        u[i] = (model_real) numbers[i];
    model_init(&state);
    for (row = 0; row < rows; row++) {
        model_step(&state, u + row * MODEL_INPUTS, y);
        for (i = 0; i < MODEL_OUTPUTS; i++) {
            result = (double) y[i];
            fwrite(&result, sizeof(double), 1, stdout);
        }
    }
    for (pass = 0; pass < passes; pass++) {
        model_init(&state);
        began = now();
        for (row = 0; row < timed; row++)
            model_step(&state, u + row * MODEL_INPUTS, y);
        began = (now() - began) / timed;
        best = began < best ? began : best;
    }
    fwrite(&best, sizeof(double), 1, stdout);
    return 0;
}
