"""The machine: precision, compiled programs, devices, files, signals, progress, worker processes, figure style."""
