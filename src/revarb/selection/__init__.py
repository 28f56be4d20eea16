"""Selection: from records to the best of several models."""
