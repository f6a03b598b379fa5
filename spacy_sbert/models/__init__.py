"""Sentence encoders: from texts and Docs to vectors."""
