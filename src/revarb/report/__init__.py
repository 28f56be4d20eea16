"""Pictures and tables for people: arrays in, bytes or renderables out."""
