"""An index of more vectors than memory holds: lists of near vectors in a few bytes, on disk."""

from pathlib import Path
from typing import Any

import numpy

from ..bulk import PartVectors
from ..files.atomic import atomic_write
from ..files.checksum import digest_of_parts
from ..progress import progress_bar, ticking
from ..similarity import checked, unit_length
from ..validation import Positive, validated
from .exact import slices
from .faiss_index import import_faiss
from .identity import EncoderIdentity
from .index import VectorIndex
from .index_folder import IndexManifest, write_folder, write_index

# How many vectors a list is trained on; FAISS asks for 39 at least
_TRAINING = 40
# How many vectors the 256 codes of a byte need
_MIN_ROWS = 39 * 2**8
# The most vectors from which a code is learned
_CODED = 64
# The least number of lists that are searched
_MIN_PROBED = 8
# The most bytes of a vector: recall@10 of 0.97 among 100 candidates, see benchmarks/search
_CODE_BYTES = 64
# The least number of vectors in a block, all of which are in memory
_BLOCK = 2**16
# The most blocks, each of which is a file
_FILES = 2**8


@validated
def build_ivfpq(
    vectors: PartVectors,
    folder: str | Path,
    *,
    n_lists: Positive | None = None,
    code_bytes: Positive | None = None,
    progress: bool = False,
) -> VectorIndex:
    """Make an index of stored vectors in a folder, in bounded memory.

    It is trained on a sample, filled block by block, and merged on disk, from where it is searched.
    A vector is found through the list whose centre c(v) is nearest to it, and stored there as the
    codes of v - c(v), a byte for each of its code_bytes slices. After an interruption the same
    call resumes.

    vectors (PartVectors): the stored vectors. folder (Path): where the index is written; one that
        is there is replaced when all is done.
    n_lists (int): how many lists; None for sqrt(n) / 2. 40 n_lists vectors, drawn from all, are in
        memory for a while. 2 sqrt(n_lists) lists are searched.
    code_bytes (int): of a vector, a divisor of its width; None for the largest up to 64. An index
        has 8 more of each.
    progress (bool): whether to show a progress bar.
    RETURNS (VectorIndex): of the kind "ivfpq".
    RAISES (ValueError): if there are fewer than 9984 vectors, or than 40 n_lists, code_bytes is no
        divisor of the width, or a file was changed. (ImportError): if FAISS is not installed.
        (RuntimeError): if another process writes to the folder.
    SOURCE: Jégou et al. 2011, Product quantization, sections 3 and 4.

    Example:
        index = build_ivfpq(PartVectors("vectors"), "index")
        index.search(pipe.encode(queries), k=10, vectors=PartVectors("vectors"))

    """
    faiss = import_faiss()
    folder = Path(folder)
    n, width = vectors.shape
    if code_bytes is None:
        code_bytes = max(d for d in range(1, _CODE_BYTES + 1) if width % d == 0)
    _check_sizes(n, width, n_lists, code_bytes)
    n_lists = n_lists or int(n**0.5 / 2)
    digest = digest_of_parts(vectors.digest, n_lists, code_bytes, faiss.__version__)
    # An interrupted build of the same finds its files by this name
    building = folder / f"building-{digest[:32]}"

    def make(lists: Path) -> Any:
        with ticking("Training", shown=progress):
            index = _trained(vectors, Path(f"{building}-trained.faiss"), n_lists, code_bytes)
        paths = _write_blocks(vectors, index, building, progress)
        with ticking("Merging", shown=progress):
            _merge(index, paths, lists)
        return index

    manifest = IndexManifest(
        kind="ivfpq",
        width=width,
        count=n,
        encoder=EncoderIdentity.of(vectors),
        vectors=vectors.digest,
        folder=vectors.name,
    )
    write_folder(folder, manifest, make)
    return VectorIndex.load(folder)


def _check_sizes(n: int, width: int, n_lists: int | None, code_bytes: int) -> None:
    """Raise ValueError for an index that FAISS cannot make."""
    if n_lists is not None and n_lists > n // _TRAINING:
        raise ValueError(
            f"Cannot make n_lists = {n_lists} of {n} vectors: expected {n // _TRAINING} at most."
        )
    if width % code_bytes:
        raise ValueError(
            f"Cannot write a vector of width {width} in code_bytes = {code_bytes} bytes: no "
            "divisor."
        )
    if n < _MIN_ROWS:
        raise ValueError(
            f"Cannot build an ivfpq index of {n} vectors: expected {_MIN_ROWS} at least. Search "
            "without."
        )


def _trained(vectors: PartVectors, path: Path, n_lists: int, code_bytes: int) -> Any:
    """Return an empty index, trained on vectors drawn from all.

    path (Path): of a file that keeps it; an interrupted build reads it.
    """
    faiss = import_faiss()
    n, width = vectors.shape
    if path.exists():
        return faiss.read_index(str(path))
    n_drawn = min(n, max(_MIN_ROWS, _TRAINING * n_lists))
    drawn = numpy.random.default_rng(0).choice(n, n_drawn, replace=False)
    sample = checked(vectors[numpy.sort(drawn)], "vectors")
    for rows in slices(len(sample), _MIN_ROWS):
        sample[rows] = unit_length(sample[rows])
    centres = faiss.IndexFlatIP(width)
    index = faiss.IndexIVFPQ(centres, width, n_lists, code_bytes, 8, faiss.METRIC_INNER_PRODUCT)
    index.pq.cp.max_points_per_centroid = _CODED
    index.train(sample)
    index.nprobe = min(n_lists, max(_MIN_PROBED, int(2 * n_lists**0.5)))
    write_index(path, index)
    return faiss.read_index(str(path))


def _write_blocks(vectors: PartVectors, index: Any, building: Path, progress: bool) -> list[Path]:
    """Write an index of each block of at least _BLOCK vectors, and return their paths.

    Each is named by its first vector, and is written whole or not at all: those of an interrupted
    build are kept.
    """
    faiss = import_faiss()
    n, _ = vectors.shape
    paths: list[Path] = []
    start = 0
    path = Path(f"{building}-0.faiss")
    while path.exists():
        paths.append(path)
        start += faiss.read_index(str(path), faiss.IO_FLAG_MMAP).ntotal
        path = Path(f"{building}-{start}.faiss")
    if start == n:
        return paths
    size = max(_BLOCK, n // _FILES)
    with progress_bar(n, initial=start, shown=progress, unit="vectors") as bar:
        for block in vectors.blocks(start):
            rows = unit_length(checked(block, f"vectors from row {start} on"))
            index.add_with_ids(rows, numpy.arange(start, start + len(rows)))
            start += len(rows)
            bar.update(len(rows))
            if index.ntotal >= size or start == n:
                path = Path(f"{building}-{start - index.ntotal}.faiss")
                write_index(path, index)
                paths.append(path)
                index.reset()
    return paths


def _merge(index: Any, paths: list[Path], path: Path) -> None:
    """Move the lists of all blocks to a file beside the index.

    Of each list it has the codes, and then the rows.
    """
    faiss = import_faiss()
    # They own their lists, and so are kept
    indexes = [faiss.read_index(str(block), faiss.IO_FLAG_MMAP) for block in paths]
    blocks = [faiss.downcast_InvertedLists(each.invlists) for each in indexes]
    numbers = range(index.nlist)
    # The length of each list in each block
    sizes = numpy.array(
        [[block.list_size(number) for number in numbers] for block in blocks], dtype="uint64"
    )
    with atomic_write(path) as file:
        for number in numbers:
            in_blocks = zip(blocks, sizes[:, number].tolist(), strict=True)
            # An empty list may point to nothing
            filled = [(block, size) for block, size in in_blocks if size]
            for block, size in filled:
                codes = faiss.rev_swig_ptr(block.get_codes(number), size * index.code_size)
                file.write(codes.data)
            for block, size in filled:
                file.write(faiss.rev_swig_ptr(block.get_ids(number), size).data)
        total = file.tell()
    lists = faiss.OnDiskInvertedLists()
    lists.nlist = index.nlist
    lists.code_size = index.code_size
    lists.totsize = total
    lists.filename = path.name
    lists.lists.resize(index.nlist)
    # FAISS reads the array itself, so it needs a name
    list_sizes = sizes.sum(axis=0)
    lists.set_all_lists_sizes(faiss.swig_ptr(list_sizes))
    index.replace_invlists(lists, True)
    # The index owns them now
    lists.this.disown()
    index.ntotal = int(sizes.sum())
