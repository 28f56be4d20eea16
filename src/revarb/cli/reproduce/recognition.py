"""`revarb reproduce recognition`: the recognition model from all its starts."""

from revarb.cli.reproduce.runner import Jobs, JsonFile, Seeds, Targets, experiments_app, run_experiment
from revarb.experiments import load_recognition


@experiments_app.command("recognition")
def reproduce_recognition(seeds: Seeds = 5, jobs: Jobs = 1, json_file: JsonFile = None) -> None:
    """Networks instead of free latent means, on the paper's three sets: every start, its members and their mixture."""
    run_experiment(load_recognition(), seeds, jobs, Targets(json_file))
