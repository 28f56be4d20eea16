/* Calibrated factors on the standard deviation, by the number of steps since a measured and since a cold start; the last
   one holds for all later steps. */
${widths}
${cold_widths}

/* The covariance of the states before a cold run. */
${cov_start}

static const ${real} *width(const ${name}_moments *moments)
{
    const int last = moments->cold ? ${cold_count} : ${count};
    const int row = moments->rows < last ? moments->rows : last;

    return (moments->cold ? cold_widths : widths)[row ? row - 1 : 0];
}

static void observe_moments(${name}_moments *moments)
{
    int j;
    ${real} std;

%readout     take(${states}, moments->x, moments->cov, ${begin}, ${window}, 0, 0, &moments->work);
%readout     predict(&readout_gaussian, 0, &moments->work);
    for (j = 0; j < ${outputs}; j++) {
%readout         moments->y[j] = moments->work.f[j] * y_std[j] + y_mean[j];
%readout         std = sqrt(moments->work.f_cov[j * ${outputs} + j]) * y_std[j] * width(moments)[j];
%!readout         moments->y[j] = moments->x[${begin} + j] * y_std[j] + y_mean[j];
%!readout         std = sqrt(moments->cov[(${begin} + j) * ${states} + ${begin} + j]) * y_std[j] * width(moments)[j];
%beyond         moments->std[j] = hypot(std, moments->beyond.doubt[j]);
%!beyond         moments->std[j] = std;
    }
}

void ${name}_init_moments(${name}_moments *moments)
{
%inputs     int row;
%inputs
    copy(${states}, x_start, moments->x);
    copy(${states} * ${states}, cov_start, moments->cov);
%inputs     for (row = 0; row <= ${past_inputs}; row++)
%inputs         copy(${inputs}, u_start, moments->u + row * ${inputs});
    moments->cold = 1;
    moments->rows = 0;
%beyond     begin_beyond(&moments->beyond, moments->x);
    observe_moments(moments);
}

void ${name}_set_moments(${name}_moments *moments, const ${real} *vector, const ${real} *cov)
{
    copy(${states}, vector, moments->x);
%inputs     fill(${inputs}, moments->u);
%inputs     copy(${past}, vector + ${states}, moments->u + ${inputs});
    if (cov)
        copy(${states} * ${states}, cov, moments->cov);
    else
        fill(${states} * ${states}, moments->cov);
    moments->cold = 0;
    moments->rows = 0;
%beyond     begin_beyond(&moments->beyond, moments->x);
    observe_moments(moments);
}

void ${name}_step_moments(${name}_moments *moments, const ${real} *u, ${real} *y, ${real} *std)
{
%known     ${real} z[${known}];
%known
%inputs     remember(moments->u, u);
%!inputs     (void) u;
%known     window(moments->u, z);
${advance}
%beyond     advance_beyond(&moments->beyond, ${past_u});
    if (moments->rows < ${last_row})
        moments->rows++;
    observe_moments(moments);
    ${name}_output_moments(moments, y, std);
}

void ${name}_output_moments(const ${name}_moments *moments, ${real} *y, ${real} *std)
{
    copy(${outputs}, moments->y, y);
    copy(${outputs}, moments->std, std);
}
