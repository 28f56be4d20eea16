typedef struct {
    ${name}_state run;
    ${real} above[${states} * ${states}], below[${states} * ${states}]; /* states of runs beside it, pairs of them */
    ${name}_beyond beyond;
    ${real} std[${outputs}]; /* of the last step */
    int pairs;
    int cold; /* whether the run started cold */
    int steps; /* since the start, counted while they make a difference */
} ${name}_moments;
