"""From records to a trained, calibrated model."""
