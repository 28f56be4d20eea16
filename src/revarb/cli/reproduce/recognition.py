"""`revarb reproduce recognition`: the recognition model from all its starts."""

from revarb.cli.reproduce.options import Jobs, JsonFile, Seeds, experiments_app
from revarb.runtime.interrupts import exit_on_interrupt


@experiments_app.command("recognition")
def reproduce_recognition(seeds: Seeds = 5, jobs: Jobs = 1, json_file: JsonFile = None) -> None:
    """Networks instead of free latent means.

    On the paper's three sets: every start, its members and their mixture.
    """
    with exit_on_interrupt():
        from revarb.cli.reproduce.runner import Targets, run_experiment
        from revarb.experiments import load_recognition
    run_experiment(load_recognition(), seeds, jobs, Targets(json_file))
