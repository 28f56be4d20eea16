"""Records and what is computed from them before any model: scaling, windows, tables, trajectories."""
