"""Read and write files: text, tables, arrays, and saved pipelines with checksums."""
