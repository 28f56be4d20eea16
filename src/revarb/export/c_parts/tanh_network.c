/* ${title}: a network of ${units} tanh units on ${regressors} regressors. */
${hidden}
${readout}
static void ${layer}(const ${real} *x, ${real} *f)
{
    ${real} units[${units}];
    int i;

    ${layer}_hidden(x, units);
    for (i = 0; i < ${units}; i++)
        units[i] = ${tanh}(units[i]);
    ${layer}_readout(units, f);
}
