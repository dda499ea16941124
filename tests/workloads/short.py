"""A program too short to sample."""
