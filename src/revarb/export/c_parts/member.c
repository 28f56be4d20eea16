%window /* ${title}Mean and standard deviation of the inputs in training, which z-scores refer to. */
%window ${u_mean}
%window ${u_std}
%window
%window /* ${title}The ${lags} inputs that the step uses, z-scored, newest first; the newest is ${delay} sample(s) old. */
%window static void ${tag}window(const ${real} *u, ${real} *z)
%window {
%window     int age, j;
%window
%window     for (age = 0; age < ${lags}; age++)
%window         for (j = 0; j < ${inputs}; j++)
%window             z[age * ${inputs} + j] = (u[(${newest} - age) * ${inputs} + j] - ${tag}u_mean[j]) / ${tag}u_std[j];
%window }
%window
/* ${title}One step of the states x, layer by layer. */
%window static void ${tag}advance(${real} *x, const ${real} *u)
%!window static void ${tag}advance(${real} *x)
{
    ${real} regressors[${regressors}];
    ${real} f[${values}];

${advance}
}

/* ${title}Mean and standard deviation of the outputs in training. */
${y_mean}
${y_std}

/* ${title}The outputs at the states x, raw units. */
static void ${tag}observe(const ${real} *x, ${real} *y)
{
    int j;

%readout     ${tag}readout(x + ${begin}, y);
%!readout     copy(${outputs}, x + ${begin}, y);
    for (j = 0; j < ${outputs}; j++)
        y[j] = y[j] * ${tag}y_std[j] + ${tag}y_mean[j];
}
