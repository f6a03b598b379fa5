"""Protocols of the papers that the package does not have; paper_tasks.py registers their tasks."""
