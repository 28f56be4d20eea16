"""Speed and memory, beside a peer in the same run: `python -m bench`.

Every part runs in a process of its own, on as many cores as it says, and gives rows of numbers:

    evaluation     one bound with its gradient, against GPy's psi statistics and against the floor
    long_records   the same for up to 100,000 rows: time and memory
    fits           recipe R0 on Drive from the import on, programs not yet compiled and kept; eight restarts
    simulation     free simulation of Actuator's test part, against GPy's predictions in a Python loop
    accelerator    evaluations on a GPU: one, sixteen together, 100,000 rows (not part of `python -m bench`)
"""
