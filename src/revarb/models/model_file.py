"""Model files: from a trained model to header and arrays and back, with validation of the contents of a file."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float64

from revarb.config.rgp import RGP
from revarb.data.preprocessor import Preprocessor, ValueRange
from revarb.data.scaling import Standardiser
from revarb.data.series import check_time_name, column_names
from revarb.data.windows import Order, regressor_sizes
from revarb.errors import InputError, check_integer, check_number, check_seed, describe
from revarb.gp.layer import Layer, Linear
from revarb.gp.posterior import Posterior
from revarb.models.base import Fitted
from revarb.models.calibration import Calibration
from revarb.models.choice import Choice
from revarb.models.container import fill_template, named_leaves, read_container, write_container
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP, Trained
from revarb.optim.status import Status, Step
from revarb.simulation.chain import Chain, StartState
from revarb.variational.networks import build_networks
from revarb.variational.noise import MIN_DEGREES, StudentNoise
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates, InitialPrior

MAX_ORDER = 10**6  # lags; far more than any record has

Header = Mapping[str, Any]
Arrays = Mapping[str, np.ndarray]
AnyFitted = TypeVar("AnyFitted", bound=Fitted)


@dataclass(frozen=True)
class ModelFormat(Generic[AnyFitted]):
    """How models of one class are written and read.

    `write` gives what the header needs beyond the common part, and a tree of arrays; `read` takes both back.
    """

    kind: str
    model_class: type[AnyFitted]
    write: Callable[[AnyFitted], tuple[dict[str, Any], Any]]
    read: Callable[[Header, Arrays], AnyFitted]


_formats: dict[str, ModelFormat] = {}


def register_format(model_format: ModelFormat) -> None:
    """Make `save_model` and `load` know a class of models (baselines register theirs)."""
    _formats[model_format.kind] = model_format


def save_model(model: Fitted, path: str | os.PathLike[str]) -> Path:
    """Write a trained model to one file (atomic write)."""
    header, arrays = model_parts(model)
    return write_container(path, header, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote, of any kind and version.

    Parameters
    ----------
    path : path
        A model file.

    Returns
    -------
    FittedRGP, Ensemble or a fitted baseline

    Raises
    ------
    InputError
        The file is missing, damaged, foreign, or of a newer version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(40.0))
    >>> with TemporaryDirectory() as folder:
    ...     file = revarb.Mean().fit(revarb.Series(u, 3.0 + u)).save(f"{folder}/mean.rgp")
    ...     revarb.load(file)
    FittedMean(inputs ('u',), outputs ('y',), status='converged')
    """
    header, arrays = read_container(path)
    try:
        return model_from_parts(header, arrays)
    except InputError as error:
        raise InputError(f"{path} cannot be opened: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}: {error}); save the model again") from None


def model_parts(model: Fitted) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and named arrays of a model."""
    known = next((each for each in _formats.values() if type(model) is each.model_class), None)
    if known is None:
        raise InputError(f"a {type(model).__name__} has no file format; known are {', '.join(_formats)}")
    header, tree = known.write(model)
    chosen = {} if model.choice is None else {"choice": model.choice.to_dict()}
    return {"kind": known.kind, **common_header(model), **header, **chosen}, named_leaves(tree)


def model_from_parts(header: Header, arrays: Arrays) -> Any:
    """The model from its header and named arrays."""
    kind = header["kind"]
    if kind not in _formats:
        raise InputError(f"it contains a model of kind {kind!r}, and this revarb reads {', '.join(_formats)}")
    model = _formats[kind].read(header, arrays)
    return model if header.get("choice") is None else replace(model, choice=Choice.from_dict(header["choice"]))


def members_parts(members: Sequence[Fitted]) -> tuple[list[dict[str, Any]], dict[str, dict[str, np.ndarray]]]:
    """Headers of several models, and a tree of their arrays by the members' numbers."""
    parts = [model_parts(member) for member in members]
    return [header for header, _ in parts], {str(number): arrays for number, (_, arrays) in enumerate(parts)}


def members_from_parts(headers: Sequence[Header], arrays: Arrays) -> list[Any]:
    """Several models from their headers and the arrays of `members_parts`."""
    shares: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        member, _, rest = name.partition(".")
        shares.setdefault(member, {})[rest] = array
    if shares.keys() != {str(number) for number in range(len(headers))}:
        raise InputError(f"it names {len(headers)} members and has arrays of {len(shares)}")
    return [model_from_parts(header, shares[str(number)]) for number, header in enumerate(headers)]


def common_header(model: Fitted) -> dict[str, Any]:
    """What the headers of all models have."""
    prep = model.preprocessor
    return {
        "standardiser": {name: values.tolist() for name, values in vars(model.scaling).items()},
        "order": [model.order.lags, model.order.input_lags, model.order.input_delay],
        "input_names": model.input_names,
        "output_names": model.output_names,
        "dt": model.dt,
        "time_name": model.preprocessor.time_name,
        "input_range": None if prep.input_range is None else [values.tolist() for values in prep.input_range],
        "output_range": None if prep.output_range is None else [values.tolist() for values in prep.output_range],
        "status": model.status.value,
        "seed": model.seed,
    }


class CommonFields(NamedTuple):
    """The fields that all trained models have."""

    preprocessor: Preprocessor
    status: Status
    seed: int


def common_fields(header: Header, order: Order | None = None) -> CommonFields:
    """The fields of `Fitted` from a header; version 0.1 has no order there, and it follows from the configuration."""
    scaling = Standardiser(**{name: check_vector(name, values) for name, values in header["standardiser"].items()})
    inputs, outputs = len(scaling.u_mean), len(scaling.y_mean)
    prep = Preprocessor(
        scaling=scaling,
        order=_check_order(header["order"], inputs) if order is None else order,
        input_names=column_names("u", header["input_names"], inputs),
        output_names=column_names("y", header["output_names"], outputs),
        dt=check_number("dt", header["dt"], above=0.0),
        input_range=_check_range(header.get("input_range")),
        output_range=_check_range(header.get("output_range")),
        time_name=check_time_name(header.get("time_name")),  # files written before version 0.2 have none
    )
    return CommonFields(prep, Status(header["status"]), check_seed(header["seed"]))


def _check_range(values: Any) -> ValueRange | None:
    # Files written before version 0.2 have none.
    if values is None:
        return None
    low, high = (check_vector("a range", each) for each in values)
    return ValueRange(low, high)


def _check_order(values: Any, inputs: int) -> Order:
    lags, input_lags, input_delay = (check_integer("an order", value, 0, MAX_ORDER) for value in values)
    if (input_lags > 0) != (inputs > 0) and lags > 0:
        raise InputError(f"an order of {input_lags} input lags does not fit {inputs} inputs")
    return Order(lags, input_lags, input_delay)


def _write_rgp(model: FittedRGP) -> tuple[dict[str, Any], Trained]:
    output = model.trained.chain.last_layer
    header = {
        "configuration": model.spec.to_dict(),
        "inducing": len(output.zeta),
        "lengths": model.lengths,
        "records": len(model.final_states),
        "bound": model.bound,
        "history": model.history,
        "calibration": None if model.calibration is None else asdict(model.calibration),
        "outputs_apart": output.reduction.ndim == 3,  # outputs with different gaps have a matrix G each
    }
    return header, model.trained


def _read_rgp(header: Header, arrays: Arrays) -> FittedRGP:
    spec = RGP.from_dict(header["configuration"])
    inputs, outputs = (len(header["standardiser"][name]) for name in ("u_mean", "y_mean"))
    fields = common_fields(header, spec.order_for(inputs))
    lengths = tuple(check_integer("a length", length, least=spec.lags + 1) for length in header["lengths"])
    # Files written before version 0.2 have no number of records: none of them was cut into blocks.
    records = check_integer("records", header.get("records", len(lengths)), 1, max(1, len(lengths)))
    inducing = check_integer("inducing", header["inducing"], least=1)
    template = _template(spec, lengths, records, inducing, inputs, outputs, header.get("outputs_apart") is True)
    trained = fill_template(template, arrays)
    check_chain(trained.chain)
    check_starts(trained.final_states)
    return FittedRGP(
        *fields,
        spec=spec,
        trained=trained,
        lengths=lengths,
        bound=check_number("bound", header["bound"]),
        history=tuple(_check_step(*step) for step in header["history"]),
        calibration=None if header.get("calibration") is None else Calibration.from_dict(header["calibration"]),
    )


def _template(
    spec: RGP, lengths: tuple[int, ...], records: int, inducing: int, inputs: int, outputs: int, outputs_apart: bool
) -> Trained:
    order, dims, blank = spec.order_for(inputs), spec.latent_dims, blank_array
    sizes = regressor_sizes(order, dims, inputs)
    linear = [
        Linear(blank(size, dim), blank(dim)) if spec.linear else None
        for size, dim in zip(sizes, (*dims, outputs), strict=True)
    ]
    layers = tuple(
        Layer(blank(inducing, size), blank(size), blank(), blank(), part)
        for size, part in zip(sizes, linear, strict=True)
    )
    states = tuple(blank(sum(lengths), dim) for dim in dims)
    priors = tuple(InitialPrior(blank(spec.lags, dim), blank(spec.lags, dim)) for dim in dims)
    square: tuple[int, ...] = (inducing, inducing)
    squares = [square] * len(dims) + [(outputs, *square) if outputs_apart else square]
    known = tuple(
        Posterior(blank(inducing, size), blank(size), blank(), blank(), blank(inducing, dim), blank(*shape), part)
        for size, dim, shape, part in zip(sizes, (*dims, outputs), squares, linear, strict=True)
    )
    joint = spec.lags * sum(dims)
    final = StartState(blank(joint), blank(joint, joint), blank(order.reach, inputs))
    rows = sum(lengths) - spec.lags * len(lengths)
    noise = StudentNoise(blank(rows, outputs), blank()) if spec.noise == "student-t" else None
    return Trained(
        Parameters(layers, FreeStates(states, states), priors, noise),
        Chain(known[:-1], known[-1], spec.lags, None if noise is None else blank()),
        (final,) * records,
        None if spec.recognition is None else build_networks(spec.recognition, order, dims, inputs, blank),
    )


def blank_array(*shape: int) -> np.ndarray:
    """An array for a template; it takes no memory, whatever sizes a header claims."""
    return np.broadcast_to(np.float64(0.0), shape)


def check_vector(name: str, values: object) -> Float64[np.ndarray, " D"]:
    """A list of finite numbers as a vector."""
    if not isinstance(values, list):
        raise InputError(f"{name} must be a list of numbers, received {describe(values)}")
    return np.array([check_number(name, value) for value in values], dtype=np.float64)


def _check_step(stage: object, iteration: object, bound: object) -> Step:
    """A step of the history."""
    whole = (
        check_integer("a stage of the history", stage, 1),
        check_integer("an iteration of the history", iteration, 1),
    )
    return Step(*whole, check_number("a bound of the history", bound))


def check_chain(chain: Chain[Posterior]) -> None:
    """Refuse kernels and noises that are not positive; an inverse lengthscale may be zero."""
    for layer in (*chain.hidden, chain.output):
        if layer is not None and not ((layer.w >= 0.0).all() and layer.variance > 0.0 and layer.sigma2 > 0.0):
            raise InputError("a layer has a kernel or a noise that is not positive")
    if chain.degrees is not None and not MIN_DEGREES <= chain.degrees < np.inf:
        raise InputError(
            f"its Student-t noise has {chain.degrees} degrees of freedom, and {MIN_DEGREES:g} is the least"
        )


def check_starts(starts: Sequence[StartState]) -> None:
    """Refuse final states whose covariance is not symmetric and positive semi-definite."""
    for start in starts:
        cov = np.asarray(start.cov)
        largest = max(float(np.abs(cov).max()), np.finfo(np.float64).tiny)
        # In units of the largest entry, to compare with rounding.
        if not np.array_equal(cov, cov.T) or np.linalg.eigvalsh(cov / largest)[0] < -1e-9:
            raise InputError("a final state has an invalid covariance: not symmetric, or with negative variances")


def _write_ensemble(model: Ensemble) -> tuple[dict[str, Any], dict[str, Any]]:
    headers, arrays = members_parts(model.members)
    return {"members": headers}, arrays


def _read_ensemble(header: Header, arrays: Arrays) -> Ensemble:
    members = members_from_parts(header["members"], arrays)
    mixed = any(member.spec != members[0].spec for member in members)
    ensemble = Ensemble.from_candidates(members) if mixed else Ensemble.from_members(members)
    # Of an interrupted mixture only the finished members are kept: theirs does not say that it was interrupted.
    return replace(ensemble, status=Status(header.get("status", ensemble.status)))  # version 0.1 has none


register_format(ModelFormat("RGP", FittedRGP, _write_rgp, _read_rgp))
register_format(ModelFormat("Ensemble", Ensemble, _write_ensemble, _read_ensemble))
