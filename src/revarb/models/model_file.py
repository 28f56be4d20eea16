"""Model files: a trained model to header and arrays and back, with validation of what a file contains."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.config.rgp import RGP
from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import column_names
from revarb.data.windows import regressor_sizes
from revarb.errors import InputError, check_integer, check_number, check_seed, describe
from revarb.gp.layer import Layer
from revarb.gp.posterior import Posterior
from revarb.models import container as store
from revarb.models.calibration import Calibration
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP, Trained
from revarb.optim.status import Status, Step
from revarb.simulation.chain import Chain, StartState
from revarb.variational.networks import blank_networks
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates, InitialPrior


def load(path: str | os.PathLike[str]) -> FittedRGP | Ensemble:
    """Read a model that `save` wrote."""
    header, arrays = store.read_container(path)
    try:
        return _from_file(header, arrays)
    except InputError as error:
        raise InputError(f"{path} cannot be opened: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}: {error}); save the model again") from None


def _from_file(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FittedRGP | Ensemble:
    kind = header["kind"]
    if kind == "RGP":
        return rgp_from_file(header, arrays)
    if kind == "Ensemble":
        shares = _by_member(arrays)
        if shares.keys() != {str(number) for number in range(len(header["members"]))}:
            raise InputError(f"it names {len(header['members'])} members and has arrays of {len(shares)}")
        return Ensemble.from_members([rgp_from_file(part, shares[str(k)]) for k, part in enumerate(header["members"])])
    raise InputError(f"it holds a model of kind {kind!r}, and this revarb knows 'RGP' and 'Ensemble'")


def _by_member(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    shares: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        member, _, rest = name.partition(".")
        shares.setdefault(member, {})[rest] = array
    return shares


def rgp_from_file(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FittedRGP:
    """The model from what `save` wrote: its header and its arrays."""
    if header["kind"] != "RGP":
        raise InputError(f"a member is of kind {header['kind']!r}, and should be an 'RGP'")
    spec = RGP.from_dict(header["configuration"])
    scaling = Standardiser(**{name: check_vector(name, values) for name, values in header["standardiser"].items()})
    inputs, outputs = len(scaling.u_mean), len(scaling.y_mean)
    prep = Preprocessor(
        scaling=scaling,
        order=spec.order_for(inputs),
        input_names=column_names("u", header["input_names"], inputs),
        output_names=column_names("y", header["output_names"], outputs),
        dt=check_number("dt", header["dt"], above=0.0),
    )
    lengths = tuple(check_integer("a length", length, least=spec.lags + 1) for length in header["lengths"])
    inducing = check_integer("inducing", header["inducing"], least=1)
    template = _template(spec, lengths, inducing, inputs, outputs, header.get("outputs_apart") is True)
    trained = store.fill_template(template, arrays)
    check_chain(trained.chain)
    check_starts(trained.final_states)
    return FittedRGP(
        preprocessor=prep,
        status=Status(header["status"]),
        seed=check_seed(header["seed"]),
        spec=spec,
        trained=trained,
        lengths=lengths,
        bound=check_number("bound", header["bound"]),
        history=tuple(check_step(*step) for step in header["history"]),
        calibration=None if header.get("calibration") is None else Calibration.from_dict(header["calibration"]),
    )


def _template(
    spec: RGP, lengths: tuple[int, ...], inducing: int, inputs: int, outputs: int, outputs_apart: bool
) -> Trained:
    # The tree of a model with this configuration. Its arrays take no memory, whatever sizes a header claims.
    def blank(*shape: int) -> np.ndarray:
        return np.broadcast_to(np.float64(0.0), shape)

    lags, dims = spec.order_for(inputs), spec.latent_dims
    sizes = regressor_sizes(lags, dims, inputs)
    layers = tuple(Layer(blank(inducing, size), blank(size), blank(), blank()) for size in sizes)
    states = tuple(blank(sum(lengths), dim) for dim in dims)
    priors = tuple(InitialPrior(blank(spec.lags, dim), blank(spec.lags, dim)) for dim in dims)
    square: tuple[int, ...] = (inducing, inducing)
    squares = [square] * len(dims) + [(outputs, *square) if outputs_apart else square]
    known = tuple(
        Posterior(blank(inducing, size), blank(size), blank(), blank(), blank(inducing, dim), blank(*shape))
        for size, dim, shape in zip(sizes, (*dims, outputs), squares, strict=True)
    )
    joint = spec.lags * sum(dims)
    final = StartState(blank(joint), blank(joint, joint), blank(lags.reach, inputs))
    return Trained(
        Parameters(layers, FreeStates(states, states), priors),
        Chain(known[:-1], known[-1], spec.lags),
        (final,) * len(lengths),
        None if spec.recognition is None else blank_networks(spec.recognition, lags, dims, inputs, blank),
    )


def check_vector(name: str, values: object) -> Float64[np.ndarray, " D"]:
    """A list of finite numbers as a vector."""
    if not isinstance(values, list):
        raise InputError(f"{name} must be a list of numbers, received {describe(values)}")
    return np.array([check_number(name, value) for value in values], dtype=np.float64)


def check_step(stage: object, iteration: object, bound: object) -> Step:
    """A step of the history."""
    whole = (
        check_integer("a stage of the history", stage, 1),
        check_integer("an iteration of the history", iteration, 1),
    )
    return Step(*whole, check_number("a bound of the history", bound))


def check_chain(chain: Chain[Posterior]) -> None:
    """Kernels and noises must be positive; an inverse lengthscale may vanish."""
    for layer in (*chain.hidden, chain.output):
        if layer is not None and not ((layer.w >= 0.0).all() and layer.variance > 0.0 and layer.sigma2 > 0.0):
            raise InputError("a layer has a kernel or a noise that is not positive")


def check_starts(starts: Sequence[StartState]) -> None:
    """A covariance is symmetric, and no variance in it is negative in any direction."""
    for start in starts:
        cov = np.asarray(start.cov)
        largest = max(float(np.abs(cov).max()), np.finfo(np.float64).tiny)
        # In units of the largest entry; what is below rounding counts as nothing.
        if not np.array_equal(cov, cov.T) or np.linalg.eigvalsh(cov / largest)[0] < -1e-9:
            raise InputError(
                "a final state has a covariance that is not one: not symmetric, or with negative variances"
            )
