/* ${title}: ${centres} basis functions of ${regressors} regressors${tail}.
   A row of ${layer}_centres is one scaled regressor of all of them, a row of ${layer}_weights all outputs of one. */
${tables}
${first}
static void ${layer}(const ${real} *x, ${real} *f)
{
    ${real} exponent[${centres}];
    int d, j, m;

    fill(${centres}, exponent);
    for (d = 0; d < ${regressors}; d++) {
        const ${real} at = x[d] * ${layer}_scale[d];
        for (m = 0; m < ${centres}; m++) {
            const ${real} distance = at - ${layer}_centres[d][m];
            exponent[m] += distance * distance;
        }
    }
    ${begin}
    for (m = 0; m < ${centres}; m++) {
        const ${real} value = ${exp}(-exponent[m]);
        for (j = 0; j < ${values}; j++)
            f[j] += ${layer}_weights[m][j] * value;
    }
}
