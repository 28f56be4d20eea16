/* Gaussian processes at Gaussian regressors. The first regressors of a layer are uncertain, the others known. */
typedef struct {
    int centres;
    int uncertain;
    int known;
    int outputs;
    int reductions; /* 1: the outputs share it; else one per output */
    ${real} variance; /* of the kernel */
    ${real} noise; /* variance of what is added to a value */
    const ${real} *scale; /* [uncertain + known] */
    const ${real} *points; /* [uncertain + known][centres], the centres times the scale */
    const ${real} *weights; /* [centres][outputs] */
    const ${real} *reduction; /* [reductions][centres (centres + 1) / 2]: the lower triangle, row by row */
    const ${real} *slopes; /* [outputs][uncertain + known] of a linear part, 0 where there is none */
    const ${real} *offset; /* [outputs] */
} gaussian_layer;

/* The lower Cholesky factor of I + factor W^1/2 C W^1/2 for the covariance C in work; returns half of its
   log-determinant. */
static ${real} factorise(const gaussian_layer *layer, ${real} factor, ${name}_work *work)
{
    const int size = layer->uncertain;
    ${real} half_log_det = 0, sum;
    int i, j, k;

    for (i = 0; i < size; i++)
        for (j = 0; j <= i; j++) {
            sum = 2 * factor * layer->scale[i] * work->cov[i * size + j] * layer->scale[j];
            if (i == j)
                sum += 1;
            for (k = 0; k < j; k++)
                sum -= work->root[i * size + k] * work->root[j * size + k];
            if (i == j) {
                work->root[i * size + j] = sqrt(sum);
                half_log_det += log(work->root[i * size + j]);
            } else {
                work->root[i * size + j] = sum / work->root[j * size + j];
            }
        }
    return half_log_det;
}

/* The distances of the centres from the mean, in units of that factor. */
static void whiten(const gaussian_layer *layer, ${name}_work *work)
{
    const int size = layer->uncertain;
    ${real} *white, sum;
    int d, k, m;

    for (m = 0; m < layer->centres; m++) {
        white = work->white + m * size;
        for (d = 0; d < size; d++) {
            sum = layer->points[d * layer->centres + m] - layer->scale[d] * work->mean[d];
            for (k = 0; k < d; k++)
                sum -= work->root[d * size + k] * white[k];
            white[d] = sum / work->root[d * size + d];
        }
    }
}

static ${real} square_norm(int size, const ${real} *x)
{
    ${real} sum = 0;
    int i;

    for (i = 0; i < size; i++)
        sum += x[i] * x[i];
    return sum;
}

/* The logarithm of what the known regressors contribute to every kernel value. */
static void set_known_part(const gaussian_layer *layer, const ${real} *known, ${name}_work *work)
{
    ${real} distance;
    int d, m;

    fill(layer->centres, work->known);
    for (d = 0; d < layer->known; d++)
        for (m = 0; m < layer->centres; m++) {
            distance = known[d] * layer->scale[layer->uncertain + d];
            distance -= layer->points[(layer->uncertain + d) * layer->centres + m];
            work->known[m] -= distance * distance;
        }
}

/* Mean of the values, and the gain: their covariance with the regressors is C times it. */
static void predict_mean(const gaussian_layer *layer, ${name}_work *work)
{
    const int size = layer->uncertain, outputs = layer->outputs;
    const ${real} half_log_det = factorise(layer, 1, work);
    ${real} value, sum;
    int d, j, k, m;

    whiten(layer, work);
    fill(outputs, work->f);
    fill(size * outputs, work->gain);
    for (m = 0; m < layer->centres; m++) {
        value = exp(work->known[m] - square_norm(size, work->white + m * size) - half_log_det);
        for (j = 0; j < outputs; j++) {
            const ${real} share = layer->weights[m * outputs + j] * value;
            work->f[j] += share;
            for (d = 0; d < size; d++)
                work->gain[d * outputs + j] += work->white[m * size + d] * share;
        }
    }
    for (j = 0; j < outputs; j++) {
        for (d = size - 1; d >= 0; d--) { /* back substitution */
            sum = work->gain[d * outputs + j];
            for (k = d + 1; k < size; k++)
                sum -= work->root[k * size + d] * work->gain[k * outputs + j];
            work->gain[d * outputs + j] = sum / work->root[d * size + d];
        }
        for (d = 0; d < size; d++)
            work->gain[d * outputs + j] *= 2 * layer->scale[d];
    }
}

/* The expectation of a product of two kernel values, over the square of the kernel's variance. */
static ${real} pair_value(const gaussian_layer *layer, const ${name}_work *work, int m, int other)
{
    const int size = layer->uncertain;
    ${real} sum = 0, apart, around;
    int d;

    for (d = 0; d < size; d++) {
        apart = layer->points[d * layer->centres + m] - layer->points[d * layer->centres + other];
        around = work->white[m * size + d] + work->white[other * size + d];
        sum += apart * apart + around * around;
    }
    return exp(work->known[m] + work->known[other] - sum / 2);
}

/* Covariance of the values without a linear part: that of the mean, and the variance that the data leave. Weights of
   opposite signs cancel in the rows of a sum; only then the rows are added. */
static void predict_covariance(const gaussian_layer *layer, ${name}_work *work)
{
    const int outputs = layer->outputs, triangle = layer->centres * (layer->centres + 1) / 2;
    const ${real} determinant = exp(-factorise(layer, 2, work));
    const ${real} *reduction;
    ${real} value, sum;
    int i, j, m, other, place = 0;

    whiten(layer, work);
    fill(layer->centres * outputs, work->rows);
    for (j = 0; j < outputs; j++)
        work->left[j] = layer->variance;
    for (m = 0; m < layer->centres; m++) {
        for (other = 0; other <= m; other++) {
            value = determinant * pair_value(layer, work, m, other);
            work->pairs[other] = other < m ? 2 * value : value;
            for (j = 0; j < outputs; j++) {
                work->rows[m * outputs + j] += value * layer->weights[other * outputs + j];
                if (other < m)
                    work->rows[other * outputs + j] += value * layer->weights[m * outputs + j];
            }
        }
        for (j = 0; j < outputs; j++) {
            reduction = layer->reduction + (layer->reductions > 1 ? j : 0) * triangle + place;
            sum = 0;
            for (other = 0; other <= m; other++)
                sum += work->pairs[other] * reduction[other];
            work->left[j] -= sum;
        }
        place += m + 1;
    }
    for (i = 0; i < outputs; i++)
        for (j = 0; j <= i; j++) {
            sum = -work->f[i] * work->f[j];
            for (m = 0; m < layer->centres; m++)
                sum += layer->weights[m * outputs + i] * work->rows[m * outputs + j];
            work->f_cov[i * outputs + j] = work->f_cov[j * outputs + i] = sum;
        }
}

/* Entry (i, j) of slopes C X for a matrix X with a column per output. */
static ${real} slope_product(const gaussian_layer *layer, const ${name}_work *work, int i, int j, const ${real} *x, int row, int column)
{
    const int size = layer->uncertain, all = layer->uncertain + layer->known;
    ${real} sum = 0;
    int d, k;

    for (d = 0; d < size; d++)
        for (k = 0; k < size; k++)
            sum += layer->slopes[i * all + d] * work->cov[d * size + k] * x[k * row + j * column];
    return sum;
}

static void add_linear_part(const gaussian_layer *layer, const ${real} *known, ${name}_work *work)
{
    const int size = layer->uncertain, outputs = layer->outputs, all = layer->uncertain + layer->known;
    int d, i, j;

    for (i = 0; i < outputs; i++)
        for (j = 0; j < outputs; j++) {
            work->f_cov[i * outputs + j] += slope_product(layer, work, i, j, layer->slopes, 1, all);
            work->f_cov[i * outputs + j] += slope_product(layer, work, i, j, work->gain, outputs, 1);
            work->f_cov[i * outputs + j] += slope_product(layer, work, j, i, work->gain, outputs, 1);
        }
    for (j = 0; j < outputs; j++) {
        work->f[j] += layer->offset[j];
        for (d = 0; d < size; d++) {
            work->f[j] += layer->slopes[j * all + d] * work->mean[d];
            work->gain[d * outputs + j] += layer->slopes[j * all + d];
        }
        for (d = 0; d < layer->known; d++)
            work->f[j] += layer->slopes[j * all + size + d] * known[d];
    }
}

/* Mean, covariance with noise, and gain of the values at the mean and covariance in work. */
static void predict(const gaussian_layer *layer, const ${real} *known, ${name}_work *work)
{
    const int outputs = layer->outputs;
    ${real} *own;
    int j;

    set_known_part(layer, known, work);
    predict_mean(layer, work);
    predict_covariance(layer, work);
    if (layer->slopes)
        add_linear_part(layer, known, work);
    for (j = 0; j < outputs; j++) { /* rounding must not make a variance negative */
        own = work->f_cov + j * outputs + j;
        if (*own < 0)
            *own = 0;
        *own += (work->left[j] > 0 ? work->left[j] : 0) + layer->noise;
    }
}

/* Take the mean and covariance of two windows of the joint state as regressors. */
static void take(int size, const ${real} *mean, const ${real} *cov, int begin, int count, int below, int more, ${name}_work *work)
{
    const int all = count + more;
    int i, j, row, column;

    for (i = 0; i < all; i++) {
        row = i < count ? begin + i : below + i - count;
        work->mean[i] = mean[row];
        for (j = 0; j < all; j++) {
            column = j < count ? begin + j : below + j - count;
            work->cov[i * all + j] = cov[row * size + column];
        }
    }
}

/* Advance the window of one layer in the joint state: predict, then put the new states in front. */
static void advance_moments(
    const gaussian_layer *layer, int size, ${real} *mean, ${real} *cov, int begin, int count, int below, int more,
    const ${real} *known, ${name}_work *work)
{
    const int outputs = layer->outputs;
    ${real} sum;
    int i, j, k;

    take(size, mean, cov, begin, count, below, more, work);
    predict(layer, known, work);
    for (i = 0; i < size; i++)
        for (j = 0; j < outputs; j++) {
            sum = 0;
            for (k = 0; k < count; k++)
                sum += cov[i * size + begin + k] * work->gain[k * outputs + j];
            for (k = 0; k < more; k++)
                sum += cov[i * size + below + k] * work->gain[(count + k) * outputs + j];
            work->cross[i * outputs + j] = sum;
        }
    shift(count, mean + begin, outputs, work->f);
    for (i = 0; i < size; i++)
        shift(count, cov + i * size + begin, outputs, work->cross + i * outputs);
    for (i = begin + count - 1; i >= begin + outputs; i--)
        copy(size, cov + (i - outputs) * size, cov + i * size);
    for (i = 0; i < outputs; i++) {
        for (j = 0; j < size; j++)
            cov[(begin + i) * size + j] = cov[j * size + begin + i];
        for (j = 0; j < outputs; j++)
            cov[(begin + i) * size + begin + j] = work->f_cov[i * outputs + j];
    }
}
