/* Standard deviations by the number of steps since a measured and since a cold start; the last row is that of all later
   steps. */
${table}
${cold_table}

/* The covariance of the states before a cold run. */
${cov_start}

/* Begin runs a standard deviation to either side of the mean, for every row of the Cholesky factor of cov; rows of
   what is known exactly are left out. */
static void spread(${name}_moments *moments, const ${real} *cov)
{
    const int size = ${states};
    ${real} *left = moments->below, *row, largest = 0, pivot;
    int i, j, k;

    copy(size * size, cov, left);
    for (i = 0; i < size; i++)
        largest = cov[i * size + i] > largest ? cov[i * size + i] : largest;
    for (i = 0; i < size; i++) {
        pivot = left[i * size + i];
        if (pivot <= ${rounding} * largest)
            continue;
        row = moments->above + moments->pairs++ * size;
        for (j = 0; j < size; j++)
            row[j] = left[i * size + j] / ${sqrt}(pivot);
        for (j = 0; j < size; j++)
            for (k = 0; k < size; k++)
                left[j * size + k] -= row[j] * row[k];
    }
    for (i = 0; i < moments->pairs; i++)
        for (j = 0; j < size; j++) {
            pivot = moments->above[i * size + j];
            moments->above[i * size + j] = moments->run.x[j] + pivot;
            moments->below[i * size + j] = moments->run.x[j] - pivot;
        }
}

static void observe_std(${name}_moments *moments)
{
    const int last = moments->cold ? ${cold_rows} : ${rows};
    const int row = moments->steps < last ? moments->steps : last;
    const ${real} *own = (moments->cold ? cold_stds : stds)[row ? row - 1 : 0];
    ${real} high[${outputs}], low[${outputs}], sum[${outputs}];
    int i, j;

    fill(${outputs}, sum);
    for (i = 0; i < moments->pairs; i++) {
        observe(moments->above + i * ${states}, high);
        observe(moments->below + i * ${states}, low);
        for (j = 0; j < ${outputs}; j++)
            sum[j] += (high[j] - low[j]) * (high[j] - low[j]) / 4;
    }
    for (j = 0; j < ${outputs}; j++)
        moments->std[j] = ${sqrt}(own[j] * own[j] + sum[j] + moments->beyond.doubt[j] * moments->beyond.doubt[j]);
}

void ${name}_init_moments(${name}_moments *moments)
{
    ${name}_init(&moments->run);
    moments->cold = 1;
    moments->steps = 0;
    moments->pairs = 0;
    begin_beyond(&moments->beyond, moments->run.x);
    spread(moments, cov_start);
    observe_std(moments);
}

void ${name}_set_moments(${name}_moments *moments, const ${real} *vector, const ${real} *cov)
{
    ${name}_set_state(&moments->run, vector);
    moments->cold = 0;
    moments->steps = 0;
    moments->pairs = 0;
    begin_beyond(&moments->beyond, moments->run.x);
    if (cov)
        spread(moments, cov);
    observe_std(moments);
}

void ${name}_step_moments(${name}_moments *moments, const ${real} *u, ${real} *y, ${real} *std)
{
    int i;

    ${name}_step(&moments->run, u, y);
    for (i = 0; i < moments->pairs; i++) {
        ${above}
        ${below}
    }
    advance_beyond(&moments->beyond, ${past_u});
    if (moments->steps < ${last_row})
        moments->steps++;
    observe_std(moments);
    ${name}_output_moments(moments, y, std);
}

void ${name}_output_moments(const ${name}_moments *moments, ${real} *y, ${real} *std)
{
    ${name}_output(&moments->run, y);
    copy(${outputs}, moments->std, std);
}
