"""Training with checkpoints, on one or several processes."""
