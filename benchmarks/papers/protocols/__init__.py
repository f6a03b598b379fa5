"""Protocols of the papers that the package does not have; tasks.py registers their tasks."""
