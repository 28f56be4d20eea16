"""The machine: precision, threads, devices, files, signals, progress, worker processes. Nothing about GPs."""
