"""Training: examples, batches, losses of batches, schedules and the logger."""
