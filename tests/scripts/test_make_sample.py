"""The sample data: the script writes it byte for byte, and no sentence of a part occurs twice or in
the other part.
"""

import csv
import json

from helpers.pipelines import ROOT
from spacy.training.converters import iob_to_docs

ASSETS = ROOT / "assets"
COUNTS = {
    "pairs": (480, 160),
    "nli": (363, 120),
    "triplets": (240, 80),
    "questions": (300, 120),
    "duplicates": (240,),
    "topics": (240, 120),
    "entities": (150, 50),
    "texts": (300, 60),
    "translations": (240, 120),
}
PARTS = ("train", "dev")


def read_table(path):
    with path.open(encoding="utf8", newline="") as file:
        if path.suffix == ".csv":
            return list(csv.DictReader(file, strict=True))
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def texts_of(name, part):
    """Return the sentences of each entry."""
    (path,) = ASSETS.glob(f"{name}-{part}.*")
    lines = path.read_text(encoding="utf8").splitlines()
    if name == "pairs":
        return [line.split("\t")[5:] for line in lines]
    if name == "nli":
        return [[row["sentence1"], row["sentence2"]] for row in map(json.loads, lines)]
    if name == "entities":
        return [
            [doc.text.strip()] for doc in iob_to_docs("\n".join(lines), n_sents=1, no_print=True)
        ]
    if name == "texts":
        return [[line] for line in lines]
    columns = ("Sentence1", "Sentence2", "Sentence3", "question1", "question2", "text")
    columns += ("english", "translation")
    return [[row[column] for column in columns if column in row] for row in read_table(path)]


def test_script_writes_every_file(run_script, tmp_path):
    run_script("make_sample", "--output", tmp_path, "--seed", 0)
    names = {path.name for path in ASSETS.iterdir()} - {"README.md"}
    assert names == {path.name for path in tmp_path.iterdir()}
    # And arguments.tsv, which has one part
    assert len(names) == sum(map(len, COUNTS.values())) + 1
    for name in names:
        assert (tmp_path / name).read_bytes() == (ASSETS / name).read_bytes(), name


def test_no_sentence_occurs_twice():
    found = {}
    for name, counts in COUNTS.items():
        for part, count in zip(PARTS, counts, strict=False):
            entries = texts_of(name, part)
            texts = [text for entry in entries for text in entry]
            assert (len(entries), len(set(texts))) == (count, len(texts)), (name, part)
            assert all(text and text == text.strip() and text[-1] in ".?" for text in texts), (
                name,
                part,
            )
            found.setdefault(part, set()).update(texts)
    assert not found["train"] & found["dev"]
