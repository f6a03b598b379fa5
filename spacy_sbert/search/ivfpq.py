"""An index of more vectors than memory holds: lists of near vectors, each in a few bytes, on disk."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy

from ..files.atomic import atomic_write
from ..files.serialization import digest_of_parts
from ..progress import progress_bar, ticking
from ..similarity import checked, unit_length
from ..validation import Positive, validated
from .exact import slices
from .index import VectorIndex
from .index_folder import FaissIndex, Manifest, import_faiss, write_folder, write_index
from .memory_mapped import StoredVectors, identity_of

TRAINING = 40  # vectors a list is trained on; FAISS asks for 39 at least
LEAST = 39 * 2**8  # vectors that the 256 codes of a byte are trained on
CODED = 64  # vectors that a code is learned from, at most
LEAST_PROBED = 8  # lists that are searched
CODE_BYTES = 64  # of a vector: recall@10 of 0.97 among 100 candidates, see benchmarks/search
BLOCK = 2**16  # vectors whose codes are in memory, and written together, at least
FILES = 2**8  # of codes, at most
ID_BYTES = 8  # of the number of a row, in FAISS


@validated
def build_ivfpq(
    vectors: StoredVectors,
    folder: str | Path,
    *,
    n_lists: Positive | None = None,
    code_bytes: Positive | None = None,
    progress: bool = False,
) -> VectorIndex:
    """Make an index of stored vectors in a folder, in bounded memory.

    It is trained on a sample, filled part by part, and merged on disk, from where it is searched. A vector is found
    through the list whose centre c(v) is nearest to it, and stands there as the codes of v - c(v), a byte for each of
    its code_bytes stretches. Interrupted, the same call goes on.

    vectors (StoredVectors): such as bulk.PartVectors.
    folder (Path): where the index is written; one that stands there is replaced when all is done.
    n_lists (int): how many lists; None for sqrt(n) / 2. 40 n_lists vectors, drawn from all, are in memory for a while.
        2 sqrt(n_lists) lists are searched.
    code_bytes (int): of a vector, a divisor of its width; None for the largest up to 64. An index has 8 more of each.
    progress (bool): whether to show a progress bar.
    RETURNS (VectorIndex): of the kind "ivfpq".
    RAISES (ValueError): if there are fewer than 9984 vectors, or than 40 n_lists; if code_bytes is no divisor of the
        width, or a file is not the one that was written. (ImportError): if FAISS is not installed. (RuntimeError): if
        another process writes to the folder.
    SOURCE: Jégou et al. 2011, Product quantization, sections 3 and 4.
    """
    import_faiss()
    folder, (n, width) = Path(folder), vectors.shape
    if n_lists is not None and n_lists > n // TRAINING:
        raise ValueError(
            f"Cannot make n_lists = {n_lists} of {n} vectors: expected {n // TRAINING} at most, of 40 vectors each."
        )
    size = code_bytes or max(d for d in range(1, CODE_BYTES + 1) if width % d == 0)
    if width % size:
        raise ValueError(
            f"Cannot write a vector of width {width} in code_bytes = {size} bytes: expected a divisor of the width."
        )
    if n < LEAST:
        raise ValueError(
            f"Cannot build an index of the kind ivfpq of {n} vectors: expected {LEAST} at least, by which its "
            "codes are learned. Search without an index, or with one of another kind."
        )
    blocks = _Blocks(vectors, folder, n_lists or int(n**0.5 / 2), size, progress)
    manifest = Manifest(
        kind="ivfpq",
        width=width,
        count=n,
        encoder=identity_of(vectors),
        vectors=vectors.digest,
        folder=vectors.name,
    )
    write_folder(folder, manifest, blocks.merge, None)
    return VectorIndex.load(folder)


@dataclass(frozen=True)
class _Blocks:
    """Files that are written on the way, under names that tell what it is made of: an interrupted build finds it."""

    vectors: StoredVectors
    folder: Path
    n_lists: int
    code_bytes: int
    progress: bool

    def merge(self, path: Path) -> FaissIndex:
        """Return the whole index, whose lists stand in the file `path`: of each its codes, then its rows."""
        faiss = import_faiss()
        with ticking("Training", shown=self.progress):
            index = self._trained()
        paths = self._filled(index)
        with ticking("Merging", shown=self.progress), ExitStack() as stack, atomic_write(path) as file:
            blocks = [stack.enter_context(block.open("rb")) for block in paths]
            sizes = numpy.stack([self._sizes(block) for block in blocks])  # (blocks, lists)
            for own in sizes.T.tolist():
                for width in (index.code_size, ID_BYTES):
                    for block, n in zip(blocks, own, strict=True):
                        file.write(block.read(n * width))
            total = file.tell()
        lists = faiss.OnDiskInvertedLists()
        lists.nlist, lists.code_size, lists.totsize, lists.filename = self.n_lists, index.code_size, total, path.name
        lists.lists.resize(self.n_lists)
        of_lists = sizes.sum(axis=0).astype("uint64")  # which must live until it is read
        lists.set_all_lists_sizes(faiss.swig_ptr(of_lists))
        index.replace_invlists(lists, True)
        lists.this.disown()  # the index owns them now
        index.ntotal = int(sizes.sum())
        return index

    def _path(self, name: str, suffix: str = "codes") -> Path:
        made_of = digest_of_parts(self.vectors.digest, self.n_lists, self.code_bytes, import_faiss().__version__)
        return self.folder / f"building-{made_of[:32]}-{name}.{suffix}"

    def _trained(self) -> Any:  # noqa: ANN401 (FAISS has no types)
        """Return an empty index, trained on vectors drawn from all."""
        faiss, path, (n, width) = import_faiss(), self._path("trained", "faiss"), self.vectors.shape
        if not path.exists():
            drawn = numpy.random.default_rng(0).choice(n, min(n, max(LEAST, TRAINING * self.n_lists)), replace=False)
            sample = checked(self.vectors[numpy.sort(drawn)], "vectors")
            for rows in slices(len(sample), LEAST):
                sample[rows] = unit_length(sample[rows])
            centres = faiss.IndexFlatIP(width)
            made = faiss.IndexIVFPQ(centres, width, self.n_lists, self.code_bytes, 8, faiss.METRIC_INNER_PRODUCT)
            made.pq.cp.max_points_per_centroid = CODED
            made.train(sample)
            made.nprobe = min(self.n_lists, max(LEAST_PROBED, int(2 * self.n_lists**0.5)))
            write_index(path, made)
        return faiss.read_index(str(path))

    def _filled(self, index: Any) -> list[Path]:  # noqa: ANN401 (FAISS has no types)
        """Write the files of the vectors' codes, in order, each with at least BLOCK vectors, and return them."""
        n, start = self.vectors.shape[0], 0
        most = max(BLOCK, n // FILES)
        paths = []
        while (path := self._path(str(start))).exists():
            paths.append(path)
            with path.open("rb") as file:
                start += int(self._sizes(file).sum())
        with progress_bar(n, initial=start, shown=self.progress, unit="vectors") as bar:
            for block in self.vectors.blocks(start):
                rows = unit_length(checked(block, f"vectors from row {start} on"))
                index.add_with_ids(rows, numpy.arange(start, start + len(rows)))
                start += len(rows)
                bar.update(len(rows))
                if index.ntotal >= most or start == n:
                    paths.append(self._path(str(start - index.ntotal)))
                    self._write(paths[-1], index)
                    index.reset()
        return paths

    def _write(self, path: Path, index: Any) -> None:  # noqa: ANN401 (FAISS has no types)
        """Write the codes of a block: how many each list has; then, list by list, codes and rows."""
        lists, array = index.invlists, import_faiss().rev_swig_ptr
        sizes = numpy.array([lists.list_size(i) for i in range(self.n_lists)], dtype="<i8")
        with atomic_write(path) as file:
            file.write(sizes.data)
            for i in numpy.flatnonzero(sizes).tolist():
                file.write(array(lists.get_codes(i), int(sizes[i]) * index.code_size).data)
                file.write(array(lists.get_ids(i), int(sizes[i])).data)

    def _sizes(self, file: BinaryIO) -> numpy.ndarray:
        """How many vectors of a block each list has, int64 (lists,); behind them stand the codes."""
        return numpy.frombuffer(file.read(ID_BYTES * self.n_lists), dtype="<i8")
