"""One step of a trained model as a program for other tools: C, CasADi, ONNX, FMU."""
