"""What is said of meta-embeddings."""

MORE_SENTENCES = " More sentences may give more directions."  # behind another message
