/* Standard deviations by the number of steps since a measured start; the last row is that of cold runs. */
${table}

void ${name}_init_moments(${name}_moments *moments)
{
    ${name}_init(&moments->run);
    moments->steps = ${rows};
}

void ${name}_set_moments(${name}_moments *moments, const ${real} *vector, const ${real} *cov)
{
    (void) cov;
    ${name}_set_state(&moments->run, vector);
    moments->steps = 0;
}

void ${name}_step_moments(${name}_moments *moments, const ${real} *u, ${real} *y, ${real} *std)
{
    ${name}_step(&moments->run, u, y);
    if (moments->steps < ${rows})
        moments->steps++;
    ${name}_output_moments(moments, y, std);
}

void ${name}_output_moments(const ${name}_moments *moments, ${real} *y, ${real} *std)
{
    ${name}_output(&moments->run, y);
    copy(${outputs}, stds[moments->steps ? moments->steps - 1 : 0], std);
}
