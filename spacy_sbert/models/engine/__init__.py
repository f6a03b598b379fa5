"""Packed forward and backward passes, int8, and which threads may use an encoder."""
