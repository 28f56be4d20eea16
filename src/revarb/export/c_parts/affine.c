${offset}
${coefficients}

static void ${layer}(const ${real} *x, ${real} *f)
{
    int d, j;

    for (j = 0; j < ${values}; j++) {
        ${real} sum = ${layer}_offset[j];
        for (d = 0; d < ${regressors}; d++)
            sum += ${layer}_coefficients[j][d] * x[d];
        f[j] = sum;
    }
}
