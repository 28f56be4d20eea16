"""Meaning of the numbers in a results file."""

NOTES = {
    "evaluation": "medians; ours, the peer and the floor take turns, three times; one bound with its gradient at the "
    "start of a fit, by the function that fit compiles, compilation not counted; M = 100, two hidden layers, "
    "L = L_u = 10. Peer: psi statistics and their gradients of the same layers, nothing else: no Cholesky factors, no "
    "bound, which favours the peer",
    "floor_seconds": "NumPy, float64, per layer: one product [R, K] x [K, M(M+1)/2], its exponential (one thread) "
    "and two products back, in blocks of rows",
    "of_floor": "seconds / floor_seconds",
    "ratio": "peer_seconds / seconds",
    "long_records": "median; the same evaluation of long records; peak resident memory of the process, which made the "
    "start of the fit and compiled as well",
    "long_fits": "a record of a simulated stirred tank (bench/stirred_tank.py), one hidden layer of two states with a "
    "linear part, M = 100, L = L_u = 10, not calibrated, by the recipe's blocks and to all rows: the whole fit with "
    "its compilation; peak resident memory of the process; NRMSE of a cold run over 2,000 other samples",
    "fits": "recipe R0 on Drive in a fresh interpreter, from before the import to the fitted model, with an empty "
    "cache of compiled programs and with a full one; eight restarts with two jobs, cache full; not calibrated, but for "
    "the last ones: four more fits, whose program is compiled too the first time; times_fit: over the fit without it",
    "imports": "python -X importtime -c 'import revarb': the total; and with a name that loads JAX and all that a fit "
    "needs",
    "refits": "medians over three seeds, everything compiled before, not calibrated: a model of half of Drive's "
    "training part, refitted to all of it; a fit of it from scratch; rmse: of a cold run over the test part, with the "
    "smallest and the largest; of_fit: seconds over those of the fit from scratch",
    "choosing": "in a fresh interpreter, from before the import to the calibrated model, on measured records: "
    "revarb.fit with both efforts, and one fit of RGP(calibrate=False); seconds: median over the seeds with a full "
    "cache of compiled programs; first_seconds: with an empty one; estimate: what fit said before it started; "
    "times_fit: over the one fit; rmse: of a cold run over the test part, in standard deviations of the training part",
    "observer": "99th percentile over 3,000 samples: Live.step and Live.correct, raw units in and out, M = 100, two "
    "hidden layers, L = L_u = 10; on one core",
    "frames": "99th percentile over 60 s of motion at 30 Hz: the model's step with twelve samples, and the places of "
    "all joints, without the browser; on one core",
    "simulation": "medians, taking turns; free simulation of Actuator's test part by a model fitted with "
    "seed 0, raw units in and out. Peer: the same recursion in Python with GPy's predictions, mean only (kernel matrix "
    "times weights) or with moments (GPy's uncertain inputs; it cannot keep covariances between states of a window). "
    "Mixture: five models of Drive of different structures, M = 50; times_member: over the mean of its members alone; "
    "times_slowest: over the slowest one",
    "load_before": "load average of the minute before; well above 0, other work ran: discard the times",
}
