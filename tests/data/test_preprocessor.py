import numpy as np
import pytest

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import InputError
from support import small


def test_blocks_keep_the_gaps(rng):
    record = Series(np.arange(12) % 3, rng.normal(size=12), output_names=["pressure"])
    one, most = small.with_gaps(record, 6), small.with_gaps(record, slice(2, None))
    (block,) = Preprocessor.from_records([one], Order(2, 2, 1)).blocks([one])
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(block.y[:, 0])), [6])
    with pytest.raises(InputError, match="output column 'pressure' is measured in no row after the first 2"):
        Preprocessor.from_records([most], Order(2, 2, 1))


def test_columns_in_another_order_are_refused():
    record = small.record(inputs=2)
    prep = Preprocessor.from_records([record], Order(2, 2, 1))
    turned = Series(record.u, record.y, input_names=["u1", "u0"])
    with pytest.raises(InputError, match=r"has the columns \['u1', 'u0'\], the model \['u0', 'u1'\]; pass those"):
        prep.check_window(turned)
