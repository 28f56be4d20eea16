"""What a user writes before any data: model, recipe and recognition configurations."""
