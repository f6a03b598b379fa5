"""Vectors that stand in memory and answer as those of a folder."""

BLOCK = 1000


class Stored:
    """Vectors in memory that count what is read; after so many blocks that fails."""

    def __init__(self, vectors, *, fails_after=None):
        self.name, self.shape, self.encoder, self.digest = (
            "there",
            vectors.shape,
            ("model-a", "a" * 64),
            "d" * 64,
        )
        self._vectors = vectors
        self._most = fails_after
        self.read = []

    def blocks(self, start=0):
        for first in range(start, len(self._vectors), BLOCK):
            if len(self.read) == self._most:
                raise OSError("the disk is gone")
            self.read.append(first)
            yield self._vectors[first : first + BLOCK]

    def __getitem__(self, rows):
        return self._vectors[rows]

    def where(self, rows):
        return [("a.npy", row, None, None) for row in rows.tolist()]
