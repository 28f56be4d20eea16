"""The plain sentence after a fit: whether the model is any good, by its error on held-out stretches."""

NO_BETTER, HARDLY_BETTER = 0.95, 0.6  # of the error of the training mean
WORSE = 1.05  # times the error of a linear model


def state_held_out(error: float, linear: float | None, mean: float, try_first: str = "") -> str:
    """Say what the held-out error of a model means, beside that of a linear model and of the training mean.

    Errors are in units of the outputs' standard deviation. `try_first` is what this model lacks, if anything.
    """
    beside = "" if linear is None else f"ARX {linear:.2g}, "
    numbers = f"held-out error {error:.2g} of the output's standard deviation ({beside}the training mean {mean:.2g})"
    advice = f"try {try_first}" if try_first else "try revarb.fit, more or other inputs, or a longer record"
    if error >= NO_BETTER * mean:
        return f"{numbers}: no better than the mean, do not use it; {advice}"
    if linear is not None and error > WORSE * linear:
        return f"{numbers}: a linear model is better; {f'try {try_first}' if try_first else 'use revarb.fit or ARX'}"
    if error >= HARDLY_BETTER * mean:
        return f"{numbers}: hardly better than the mean; {advice}"
    return f"{numbers}: use it"
