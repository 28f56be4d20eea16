"""Everything about the machine: precision, threads, devices, files, signals, progress, worker processes."""
