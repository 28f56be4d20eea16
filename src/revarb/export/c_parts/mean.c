/* The mean of the members' outputs. */
static void observe(const ${real} *x, ${real} *y)
{
    ${real} own[${outputs}];
    int j;

    fill(${outputs}, y);
${added}
    for (j = 0; j < ${outputs}; j++)
        y[j] /= ${members};
}
