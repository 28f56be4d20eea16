"""Trained models as programs of other tools: C, CasADi, ONNX, FMU."""
