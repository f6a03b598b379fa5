"""The `sbert` component, its vectors on Docs, and what it needs of a pipeline."""
