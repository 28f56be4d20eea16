"""Speed and memory, compared with GPy in the same run: `python -m bench`.

Every part runs in its own process, on a given number of cores, and gives rows of numbers:

    evaluation     one bound with its gradient, compared with GPy's psi statistics and with a lower limit (floor)
    long_records   the same for up to 100,000 rows: time and memory
    long_fits      a fit to blocks of 100,000 rows and one to all of them: time, memory and error
    fits           recipe R0 on Drive, import included, with an empty and a full compilation cache; eight restarts
    refits         Drive, its first half and then all of it: a refit, and a fit from scratch
    choosing       revarb.fit on measured records of 250 to 2000 rows, beside one fit of one configuration
    simulation     free simulation of Actuator's test part, compared with GPy's predictions in a Python loop
    observer       one step of a live run with its correction
    frames         one frame of the avatar
    accelerator    evaluations on a GPU: one, a batch of sixteen, 100,000 rows (not part of `python -m bench`)
"""
