"""Model files: what header and arrays of every class mean, and their validation; formats are registered."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor, ValueRange
from revarb.data.scaling import Standardiser
from revarb.data.windows import Order, regressor_sizes
from revarb.errors import InputError, check_integer, check_number, check_seed, describe
from revarb.gp.layer import Layer, Linear
from revarb.gp.posterior import Posterior
from revarb.models.choice import Choice
from revarb.models.container import find_columns, open_contents, read_container, write_container
from revarb.models.recipe import Status
from revarb.models.rgp import RGP
from revarb.simulation.chain import Chain, StartState
from revarb.variational.noise import MIN_DEGREES, StudentNoise
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates, InitialPrior, Network, build_networks

Tree = TypeVar("Tree")


def named_leaves(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by their path in it, such as `parameters.layers.0.zeta`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in leaves}


def blank_array(*shape: int) -> np.ndarray:
    """An array for a template; it takes no memory, whatever sizes a header claims."""
    return np.broadcast_to(np.float64(0.0), shape)


def fill_template(template: Tree, arrays: Mapping[str, np.ndarray]) -> Tree:
    """The tree of `template` with the arrays of a file; names and shapes must agree."""
    expected = named_leaves(template)
    if expected.keys() != arrays.keys():
        odd = sorted(expected.keys() ^ arrays.keys())[0]
        raise InputError(f"array {odd!r} is {'missing' if odd in expected else 'not expected'}")
    for name, array in arrays.items():
        if array.shape != expected[name].shape:
            raise InputError(f"array {name!r} has shape {array.shape}, expected {expected[name].shape}")
    return jax.tree.unflatten(jax.tree.structure(template), [arrays[name] for name in expected])


MAX_ORDER = 10**6  # lags; far more than any record has

Header = Mapping[str, Any]
Arrays = Mapping[str, np.ndarray]
AnyFitted = TypeVar("AnyFitted")


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
    """Make `save_model` and `load` know a class of models."""
    _formats[model_format.kind] = model_format


def save_model(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a trained model to one file (atomic write)."""
    return write_container(path, *model_parts(model))


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
    with open_contents(path):
        return model_from_parts(header, arrays)


def model_parts(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
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


def members_parts(members: Sequence[Any]) -> tuple[list[dict[str, Any]], dict[str, dict[str, np.ndarray]]]:
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


def common_header(model: Any) -> dict[str, Any]:
    """What the headers of all models have."""
    prep = model.preprocessor
    return {
        "standardiser": {name: values.tolist() for name, values in vars(prep.scaling).items()},
        "order": [prep.order.lags, prep.order.input_lags, prep.order.input_delay],
        "input_names": prep.input_names,
        "output_names": prep.output_names,
        "dt": prep.dt,
        "time_name": prep.time_name,
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
    scaling = Standardiser(**{name: _check_vector(name, values) for name, values in header["standardiser"].items()})
    prep = Preprocessor(
        scaling=scaling,
        order=_check_order(header["order"], len(scaling.u_mean)) if order is None else order,
        **find_columns(header)._asdict(),
        input_range=_check_range(header.get("input_range")),
        output_range=_check_range(header.get("output_range")),
    )
    return CommonFields(prep, Status(header["status"]), check_seed(header["seed"]))


def _check_range(values: Any) -> ValueRange | None:
    # Files written before version 0.2 have none.
    return None if values is None else ValueRange(*(_check_vector("a range", each) for each in values))


def _check_order(values: Any, inputs: int) -> Order:
    lags, input_lags, input_delay = (check_integer("an order", value, 0, MAX_ORDER) for value in values)
    if (input_lags > 0) != (inputs > 0) and lags > 0:
        raise InputError(f"an order of {input_lags} input lags does not fit {inputs} inputs")
    return Order(lags, input_lags, input_delay)


def _check_vector(name: str, values: object) -> Float64[np.ndarray, " D"]:
    """A list of finite numbers as a vector."""
    if not isinstance(values, list):
        raise InputError(f"{name} must be a list of numbers, received {describe(values)}")
    return np.array([check_number(name, value) for value in values], dtype=np.float64)


class Trained(NamedTuple):
    """The arrays of a trained recurrent GP, all z-scored."""

    parameters: Parameters  # its states are written out, also those of a recognition model
    chain: Chain[Posterior]
    final_states: tuple[StartState, ...]
    networks: tuple[Network, ...] | None = None  # of a recognition model


def read_trained(
    arrays: Arrays, spec: RGP, prep: Preprocessor, lengths: Sequence[int], records: int, inducing: int, apart: bool
) -> Trained:
    """The arrays of a recurrent GP with these sizes, validated; `apart`: its outputs have a matrix G each."""
    dims, inputs, outputs, blank = spec.latent_dims, len(prep.input_names), len(prep.output_names), blank_array
    layers: list[Layer] = []
    known: list[Posterior] = []
    for size, dim in zip(regressor_sizes(prep.order, dims, inputs), (*dims, outputs), strict=True):
        kernel = blank(inducing, size), blank(size), blank(), blank()
        linear = Linear(blank(size, dim), blank(dim)) if spec.linear else None
        layers.append(Layer(*kernel, linear))
        known.append(Posterior(*kernel, blank(inducing, dim), blank(inducing, inducing), linear))
    if apart:
        known[-1] = replace(known[-1], reduction=blank(outputs, inducing, inducing))
    states = tuple(blank(sum(lengths), dim) for dim in dims)
    priors = tuple(InitialPrior(blank(spec.lags, dim), blank(spec.lags, dim)) for dim in dims)
    joint, rows = spec.lags * sum(dims), sum(lengths) - spec.lags * len(lengths)
    final = StartState(blank(joint), blank(joint, joint), blank(prep.order.reach, inputs))
    noise = StudentNoise(blank(rows, outputs), blank()) if spec.noise == "student-t" else None
    template = Trained(
        Parameters(tuple(layers), FreeStates(states, states), priors, noise),
        Chain(tuple(known[:-1]), known[-1], spec.lags, None if noise is None else blank()),
        (final,) * records,
        None if spec.recognition is None else build_networks(spec.recognition.hidden, prep.order, dims, inputs, blank),
    )
    trained = fill_template(template, arrays)
    check_chain(trained.chain)
    check_starts(trained.final_states)
    return trained


def check_chain(chain: Chain[Posterior]) -> None:
    """Raise `InputError` for kernels and noises that are not positive; an inverse lengthscale may be zero."""
    for layer in (*chain.hidden, chain.output):
        if layer is not None and not ((layer.w >= 0.0).all() and layer.variance > 0.0 and layer.sigma2 > 0.0):
            raise InputError("a layer has a kernel or a noise that is not positive")
    if chain.degrees is not None and not MIN_DEGREES <= chain.degrees < np.inf:
        raise InputError(
            f"its Student-t noise has {chain.degrees} degrees of freedom, and {MIN_DEGREES:g} is the least"
        )


def check_starts(starts: Sequence[StartState]) -> None:
    """Raise `InputError` for final states whose covariance is not symmetric and positive semi-definite."""
    for start in starts:
        check_covariance("a final state", np.asarray(start.cov))


def check_covariance(what: str, cov: Float64[np.ndarray, "S S"]) -> None:
    """Raise `InputError` for a covariance that is not symmetric and positive semi-definite."""
    largest = max(float(np.abs(cov).max()), np.finfo(np.float64).tiny)
    # In units of the largest entry, to compare with rounding.
    if not np.array_equal(cov, cov.T) or np.linalg.eigvalsh(cov / largest)[0] < -1e-9:
        raise InputError(f"{what} has an invalid covariance: not symmetric, or with negative variances")
