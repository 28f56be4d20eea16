"""results/export.json: every record and format of the shipped table, and what it must show."""

from support.results import read_experiment, read_results, rows_of, values

EXPORTED = ("C, double", "C, float", "CasADi", "ONNX", "FMU")
IN_PYTHON = ("JAX step", "JAX step, fixed model", "revarb.Live")
LIMITS = read_experiment("export")["limits"]


def test_every_record_has_every_format_once():
    meta, names = read_results("export")["meta"], [record["name"] for record in read_experiment("export")["records"]]
    assert meta["table"] == "export" and "--only" not in meta["command"]
    found = [(row["dataset"], row["format"]) for row in rows_of("export")]
    assert found == [(name, kind) for name in names for kind in (*EXPORTED, *IN_PYTHON)]


def test_every_format_has_the_outputs_of_simulate():
    for kind in EXPORTED:
        limit = LIMITS["single"] if kind == "C, float" else LIMITS["double"]
        assert max(values(rows_of("export"), "difference", format=kind)) <= limit


def test_a_step_in_c_is_much_faster_than_one_by_jax():
    assert min(values(rows_of("export"), "speedup", format="C, double")) >= LIMITS["faster"]


def test_the_runs_are_those_of_whole_test_parts_with_several_inputs_and_outputs():
    sizes = {row["dataset"]: (row["inputs"], row["outputs"]) for row in rows_of("export")}
    assert sizes == {"drive": (1, 1), "actuator": (1, 1), "cstr": (1, 2), "winding": (5, 2)}
    assert all(row["rows"] >= 250 for row in rows_of("export"))
