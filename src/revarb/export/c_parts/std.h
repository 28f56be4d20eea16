
/* With standard deviations. ${about} */
${struct}
/* As ${name}_init, ${name}_set_state, ${name}_step and ${name}_output; cov is the covariance of the
   ${states} states, row by row, or 0: they are known exactly. */
void ${name}_init_moments(${name}_moments *moments);
void ${name}_set_moments(${name}_moments *moments, const ${real} *vector, const ${real} *cov);
void ${name}_step_moments(${name}_moments *moments, const ${real} *u, ${real} *y, ${real} *std);
void ${name}_output_moments(const ${name}_moments *moments, ${real} *y, ${real} *std);
