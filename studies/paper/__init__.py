"""The paper's experiments: Tables 1 and 2, the recognition model, and the avatar."""
