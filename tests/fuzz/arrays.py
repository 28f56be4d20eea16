"""Arrays as users pass them, and other values in place of an array."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as nst

from fuzz import samples
from fuzz.junk import plain, simple

sides = st.sampled_from([0, 1, 2, samples.ROWS])
shapes = st.lists(sides, max_size=3).map(tuple) | st.sampled_from([(samples.ROWS,), (samples.ROWS, 1)])
numbers = st.sampled_from([0.0, 1.0, -2.5, 1e12, 1e-300, 5e-324, 1e150, -1e200, 1e300, 1.7e308]) | st.floats(-1e3, 1e3)
types = st.sampled_from(
    ["f8", "f4", "f2", "g", "i8", "u8", "i1", "?", "c16", "U3", "S3", "M8[s]", "m8[s]", "O", "f8,i4"]
)


def _any_type(drawn: tuple[str, tuple[int, ...]]) -> np.ndarray:
    dtype, shape = drawn
    return np.ones(shape, dtype=dtype)


@st.composite
def masked(draw) -> np.ma.MaskedArray:
    """One of its values may be hidden."""
    values = np.ma.array(np.linspace(0.0, 1.0, samples.ROWS))
    if draw(st.booleans()):
        values[draw(st.integers(0, samples.ROWS - 1))] = np.ma.masked
    return values


floats = nst.arrays(np.float64, shapes, elements=numbers | st.floats())
finite = nst.arrays(np.float64, st.sampled_from([(samples.ROWS,), (samples.ROWS, 1)]), elements=numbers)
with_gaps = nst.arrays(np.float64, (samples.ROWS, 2), elements=numbers | st.just(np.nan))
odd_objects = st.sampled_from(
    [None, object(), {1, 2}, {"a": 1}, range(samples.ROWS), (x for x in "ab"), Fraction(1, 3), [Decimal("1e400")] * 8,
     np.longdouble("1e400") * np.ones(8), [10**400] * 8, b"bytes", memoryview(b"12345678"), np.float64(1.0),
     [[1.0], [2.0, 3.0]], [None] * 8, ["1"] * 8, [1 + 2j] * 8, np.matrix("1 2; 3 4"), [[[[]]]], float, "12345678"]
)  # fmt: skip
arrays = (
    finite | floats | st.tuples(types, shapes).map(_any_type) | masked() | odd_objects | st.lists(simple, max_size=2)
    | plain
)  # fmt: skip
