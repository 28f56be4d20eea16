"""The records on which models are chosen: long enough ones, parts of very long ones, and their held-out blocks."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import MIN_ROWS, Series
from revarb.data.windows import Order
from revarb.errors import InputError, warn_user
from revarb.fitting.held_out import FOLDS, HeldOut, HeldOutBlock, cut_held_out_blocks, hold_out, mask_fold

FEWEST_LAGS, FEW_LAGS, LAGS, MORE_LAGS = 2, 5, 10, 20  # of the default candidates
ROWS_PER_LAG = MIN_ROWS  # all records together must have this many rows for every lag
RECORD_ROWS_PER_LAG = 6  # and a record this many
MOST_ROWS = 0.8  # share of the rows that must be in records that are long enough
MAX_ROWS = 700  # of all records together; with more, parts of them are used: choosing needs fewer than fitting
PART_ROWS = 350
LONG_ROWS = 5000  # of all records together: with more, a fit does not see all of them, and bands are set on the others
ASIDE_BLOCKS, ASIDE_ROWS = 12, 300  # of these blocks, and of the rows before each, from which its cold run starts,
LEAST_LEAD = 100  # or this many at the beginning of a record
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0  # multiples of it, modulo 1, are spread evenly


def limit_lags(records: Sequence[Series], lags: int) -> int:
    """The number of lags, or less where the records are too short for that many."""
    lengths = np.array([len(record) for record in records])
    for fewer in range(lags, 1, -1):
        in_long = lengths[lengths >= RECORD_ROWS_PER_LAG * fewer].sum()
        if lengths.sum() >= ROWS_PER_LAG * fewer and in_long >= MOST_ROWS * lengths.sum():
            return fewer
    return 1


def leave_out_short(records: Sequence[Series]) -> tuple[Series, ...]:
    """The records that are long enough for all default candidates, with a warning where others are left out."""
    kept = tuple(records)
    while True:  # with fewer records there can be more lags, for which others are too short
        least = RECORD_ROWS_PER_LAG * limit_lags(kept, MORE_LAGS)
        long = tuple(record for record in kept if len(record) >= least)
        if len(long) in (0, len(kept)):
            break
        kept = long
    if len(kept) < len(records):
        warn_user(
            f"{len(records) - len(kept)} of {len(records)} records have fewer than {least} samples and are left out; "
            "RGP(lags=…).fit takes them with fewer lags"
        )
    return kept


def cut_parts(records: Sequence[Series]) -> list[Series]:
    """The records themselves, or spread parts of them with about `MAX_ROWS` rows in all.

    All records are used where a column moves only outside of these parts.
    """
    if sum(len(record) for record in records) <= MAX_ROWS:
        return list(records)
    parts = [part for record in records for part in _cut(record)]
    chosen, rows = [], 0
    for number in np.argsort(np.arange(len(parts)) * GOLDEN % 1.0):  # spread over the records, in an order of its own
        if rows < MAX_ROWS:
            chosen.append(int(number))
            rows += len(parts[number])
    parts = [parts[number] for number in sorted(chosen)]
    try:
        Standardiser.from_records(parts)
    except InputError:
        return list(records)
    return parts


def _cut(record: Series) -> list[Series]:
    # Parts of at least PART_ROWS rows, but for a shorter record; one without any measured output is of no use.
    ends = np.linspace(0, len(record), max(1, len(record) // PART_ROWS) + 1).round().astype(int)
    parts = [record[begin:end] for begin, end in pairwise(ends)]
    return [part for part in parts if part.missing < part.y.size]


def hold_out_blocks(records: Sequence[Series], largest: Order) -> HeldOut | None:
    """Hold out blocks with measured outputs, the same for all candidates, which are assigned to the folds in turn.

    `largest` covers the orders of all candidates. None where the records are too short, too few blocks are measured, or
    a fold leaves too little: an output that does not move.
    """
    prep = Preprocessor.from_records(records, largest)
    blocks = cut_held_out_blocks(records, prep)
    measured = [block for block in blocks if np.isfinite(records[block.record].y[block.rows]).any()]
    measured = [block._replace(fold=position % FOLDS) for position, block in enumerate(measured)]
    if len(measured) < FOLDS or min(block.begin for block in measured) < largest.reach:
        return None
    try:
        for fold in range(FOLDS):
            Standardiser.from_records(mask_fold(records, measured, fold))
    except InputError:
        return None
    return hold_out(records, measured, prep.skip)


def set_aside(records: Sequence[Series], largest: Order) -> tuple[tuple[Series, ...], HeldOut | None]:
    """Set evenly spread blocks of long records aside, whose outputs no fit to all records sees: for the bands.

    Returns the records without these outputs, and the blocks; None where the records are not long.
    """
    total = sum(len(record) for record in records)
    if total <= LONG_ROWS:
        return tuple(records), None
    begins = np.cumsum([0, *(len(record) for record in records)])
    blocks, pieces, ends = [], [], []
    for place in total * (np.arange(ASIDE_BLOCKS) + 0.5) / ASIDE_BLOCKS:
        number = int(np.searchsorted(begins, place, side="right")) - 1
        record, middle = records[number], int(place) - int(begins[number])
        end = min(max(middle + ASIDE_ROWS // 2, ASIDE_ROWS + LEAST_LEAD), len(record))
        block = HeldOutBlock(number, end - ASIDE_ROWS, end, 0)
        if block.begin >= LEAST_LEAD and np.isfinite(record.y[block.rows]).any():
            piece = record[max(0, block.begin - ASIDE_ROWS) : end]
            ends.append(HeldOutBlock(len(pieces), len(piece) - ASIDE_ROWS, len(piece), len(pieces) % FOLDS))
            blocks.append(block)
            pieces.append(piece)
    if len(blocks) < ASIDE_BLOCKS // 2:
        return tuple(records), None
    skip = Preprocessor.from_records(records, largest).skip
    return tuple(mask_fold(records, blocks, 0)), hold_out(pieces, ends, skip)
