"""Training: from records to a trained, calibrated model."""
