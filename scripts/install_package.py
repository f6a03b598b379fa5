"""Install a packaged pipeline into a fresh environment, load it there offline, and compare its
vectors.

The package is installed together with this checkout of spacy-sbert, which it requires. The fresh
environment has no other model: neither a package that carries one nor the hub.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy
import spacy
from spacy.language import Language

ROOT = Path(__file__).resolve().parent.parent
TEXTS = ["A man is eating food.", "Someone is having a meal.", "The dog is asleep.", ""]
LOAD = """
import json, sys
import numpy, spacy
nlp = spacy.load(sys.argv[1])
texts = json.loads(sys.argv[2])
docs = list(nlp.pipe(texts))
numpy.save(sys.argv[3], numpy.array([doc.vector for doc in docs]))
print(f"{texts[0]!r} and {texts[1]!r}: similarity {docs[0].similarity(docs[1]):.4f}")
print(f"{texts[0]!r} and {texts[2]!r}: similarity {docs[0].similarity(docs[2]):.4f}")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", help="name of the package, such as en_sbert_sts")
    parser.add_argument("version", help="its version")
    parser.add_argument(
        "--packages", type=Path, required=True, help="folder that 'spacy package' wrote to"
    )
    parser.add_argument(
        "--pipeline", type=Path, required=True, help="folder of the pipeline that was packaged"
    )
    parser.add_argument(
        "--metrics", type=Path, help="folder with before.json and after.json, to print"
    )
    arguments = parser.parse_args()

    wheel = next(
        (arguments.packages / f"{arguments.package}-{arguments.version}" / "dist").glob("*.whl")
    )
    nlp = spacy.load(arguments.pipeline)
    with tempfile.TemporaryDirectory() as folder:
        installed = load_in_fresh_environment(
            Path(folder), wheel, arguments.package, constraints_for(nlp)
        )
    here = numpy.array([doc.vector for doc in nlp.pipe(TEXTS)])
    difference = float(numpy.abs(installed - here).max())
    print(f"Largest difference between the vectors here and there: {difference:.1e}")
    if difference > 1e-6:
        sys.exit("The installed package gives other vectors than the pipeline it was made of.")
    if arguments.metrics:
        for name in ("before", "after"):
            scores = json.loads((arguments.metrics / f"{name}.json").read_text(encoding="utf8"))
            print(
                f"Spearman {name} training: {100 * scores['sts_spearman']:.2f} ({scores['pairs']} "
                "pairs)"
            )


def constraints_for(nlp: Language) -> Path:
    """The versions that a pipeline is tested with: others, if it has the transformer of
    spacy-transformers.
    """
    factories = {nlp.get_pipe_meta(name).factory for name in nlp.component_names}
    return ROOT / (
        "constraints-spacy-transformers.txt" if "transformer" in factories else "constraints.txt"
    )


def load_in_fresh_environment(
    folder: Path, wheel: Path, package: str, constraints: Path
) -> numpy.ndarray:
    """Vectors of TEXTS from the package in an environment that has nothing else."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = ["-m", "pip", "install", "-q", "-c", constraints, ROOT, wheel]
    subprocess.run([str(part) for part in (python, *install)], check=True)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "empty")}
    command = [
        str(python),
        "-I",
        "-c",
        LOAD,
        package,
        json.dumps(TEXTS),
        str(folder / "vectors.npy"),
    ]
    subprocess.run(command, check=True, cwd=folder, env=environment)
    return numpy.load(folder / "vectors.npy")


if __name__ == "__main__":
    main()
