"""Write train.csv and test.csv: the records of `revarb demo`, with a column of times."""

import numpy as np

import revarb

split = revarb.datasets.load("two_tanks")
for name, record in (("train.csv", split.train), ("test.csv", split.test)):
    table = np.column_stack([record.dt * np.arange(len(record)), record.u, record.y])
    np.savetxt(name, table, "%.4f", ",", header="time,voltage,level", comments="")
