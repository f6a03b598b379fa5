"""The tasks of each suite, and the protocols by which they are measured."""
