/* Intermediate results of a step with standard deviations. */
typedef struct {
    ${real} mean[${regressors}], cov[${regressors} * ${regressors}], root[${regressors} * ${regressors}]; /* of regressors */
    ${real} white[${centres} * ${regressors}], known[${centres}], pairs[${centres}], rows[${centres} * ${values}];
    ${real} f[${values}], f_cov[${values} * ${values}], left[${values}], gain[${regressors} * ${values}];
    ${real} cross[${states} * ${values}];
} ${name}_work;

/* A run with standard deviations: the joint Gaussian distribution of all states. */
typedef struct {
    ${real} x[${states}], cov[${states} * ${states}]; /* mean and covariance of the states, z-scored */
%inputs     ${real} u[(${past_inputs} + 1) * ${inputs}]; /* last inputs, oldest first */
    ${real} y[${outputs}], std[${outputs}]; /* of the last step */
    int cold; /* whether the run started cold */
    int rows; /* steps since the start, counted while they make a difference */
%beyond     ${name}_beyond beyond;
    ${name}_work work;
} ${name}_moments;
