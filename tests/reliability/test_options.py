"""Every option and argument of every `python -m spacy sbert` command, with wrong values."""

import re
from collections.abc import Iterator

import numpy
import pytest
import spacy
import typer
from click.testing import CliRunner
from helpers.counted_cases import parts
from helpers.invoking import all_commands
from helpers.pipelines import ROOT
from helpers.wrong_settings import PROMISE
from thinc.api import Config

from spacy_sbert.bulk import encode_dataset
from spacy_sbert.cli import app
from spacy_sbert.search import VectorIndex

GROUP = typer.main.get_command(app)
VALUES = ["", "abc", "-1", "0", "1.5", "nan", "inf", "1000000000", "1" + 30 * "0", "\udcff"]
# Which no file here reaches; the other one has more than 64 bits
MANY = {"1000000000"}
ANY = set(VALUES) - {"\udcff"}
# finite, as scores and similarities are
LARGE = {*MANY, "1" + 30 * "0"}
PAIRS = [
    ("A man.", "The mat."),
    ("The cat sat.", "A meal."),
    ("He ran.", "The dog ran fast."),
    ("Food.", "Eating."),
]
# What is right, by option, or by command and option: with the reason
ALLOWED = {
    # No more than there is
    **dict.fromkeys(("k", "window", "min-size", "init-config epochs"), MANY),
    # All
    **{key: {"0", *MANY} for key in ("mine k", "limit", "batch-items", "distill-static words")},
    # None
    **{key: {"0"} for key in ("bootstrap", "checkpoint-every", "visualize clusters")},
    "max-tokens": {"0", *LARGE},
    "seed": {"0", "1000000000"},
    # Any text may be one
    **dict.fromkeys(("prompt", "title", "version", "card name", "trained-on"), ANY),
    # Of a new pipe
    **dict.fromkeys(("fit-meta name", "fit-meta pipe", "import name", "import pipe"), ANY - {""}),
    # Which training looks for
    "init-config encoder": ANY - {""},
    # Any text but what reads as an option
    "search queries": ANY - {"", "-1"},
    # none; the CPU, as --gpu-id has it
    "gpu-ids": {"", "-1"},
    # The CPU
    "gpu-id": {"-1"},
    **{
        key: {"-1", "0"}
        for key in ("min-score", "init-config min-score", "cluster threshold", "visualize low")
    },
    # Of a layout with a range
    **{key: {"0"} for key in ("convert min-score", "evaluate min-score")},
    "visualize high": {"1.5", *LARGE},
    # Scores of a reranker have no range
    **{f"mine-negatives {one}": {"-1", "0", "1.5", *LARGE} for one in ("max-score", "min-score")},
    "absolute-margin": {"0", "1.5", *LARGE},
    "relative-margin": {"0"},
    "range-min": {"0"},
    "range-max": MANY,
    "init-config max-score": LARGE,
    # Of a baseline that is not asked for
    "encoder": set(VALUES),
    # None
    **{
        f"{one} {name}": {""}
        for one in ("evaluate", "convert")
        for name in ("format", "score", "label")
    },
    # none; the folder one is in
    **{key: {""} for key in ("members", "benchmark folder")},
    # Of a .txt file, which has no columns, of a layout with a range, of another method or style,
    # and a file
    **{
        key: set()
        for key in ("column", "visualize column", "distill-static column", "fit-meta column")
    },
    **{
        key: set()
        for key in (
            "convert max-score",
            "evaluate max-score",
            "cluster seed",
            "visualize seed",
            "search --queries",
        )
    },
}
# Of files that are written or kept, which tests of files try; hub-card needs the hub, and has the
# options of card
ELSEWHERE = {
    "code",
    "output",
    "output_path",
    "index_path",
    "cache",
    "more",
    "results",
    "index",
    "counts",
    "help",
    # OUTPUT of encode, and what it has not got where --pipeline is given
    "second",
    "third",
}
# They need the hub, or spacy-transformers, and have the options of others
LEFT_OUT = ("hub-card", "convert-transformer")
FILES = {
    "config",
    "train_path",
    "dev_path",
    "input_path",
    "data_path",
    "folder",
    "corpus",
    "texts_path",
    "source",
}
BY_VALUE = {
    "pipeline",
    "teacher",
    *FILES,
    "members",
    "score",
    "label",
    "labels",
    "column",
    "id_column",
}
# Named by what was given
BY_VALUE |= {"query_prompt", "vectors", "queries", "pipe", "first", "ids", "reranker"}
OTHERWISE = {
    "labels": "as a table",
    "column": "as a table",
    "baseline": "name =",
    "queries": "a query",
}
# How else messages may name them
OTHERWISE["input_path"] = OTHERWISE["first"] = "INPUT"


@pytest.fixture(scope="module")
def folder(tiny_bert, tmp_path_factory):
    made = tmp_path_factory.mktemp("options")
    nlp = spacy.blank("xx")
    for name in ("other", "sbert"):
        nlp.add_pipe("sbert", name=name, config={"model": {"name": str(tiny_bert)}})
    nlp.initialize()
    nlp.to_disk(made / "nlp")
    (made / "corpus.txt").write_text(
        "\n".join(["A man is eating.", "The dog ran fast.", "He cannot go."] * 12)
    )
    rows = "".join(
        f"genre\tfile\t2015\tid\t{i}.0\t{one}\t{two}\n" for i, (one, two) in enumerate(PAIRS)
    )
    (made / "pairs.csv").write_text(rows)
    (made / "own.csv").write_text(
        "first,second,score\n" + "".join(f"one {i},two {i},{i % 5}.5\n" for i in range(9))
    )
    (made / "positives.csv").write_text(
        "anchor,positive\n" + "".join(f"{one},{two}\n" for one, two in PAIRS)
    )
    for name in ("data", "texts"):
        (made / name).mkdir()
    (made / "texts" / "a.txt").write_text("A man is eating.\n")
    VectorIndex.build(numpy.eye(2), ids=["a", "b"]).save(made / "index")
    encode_dataset(made / "texts", made / "vectors", pipeline=made / "nlp")
    config = Config().from_disk(ROOT / "configs" / "ranking.cfg", interpolate=False)
    config["components"]["transformer"]["model"]["name"] = str(tiny_bert)
    config["paths"] = {key: str(ROOT / path) for key, path in config["paths"].items()}
    config["training"].update({"max_epochs": 0, "max_steps": 1, "eval_frequency": 1})
    config.to_disk(made / "train.cfg", interpolate=False)
    return made


def arguments_of(command: str, folder, tiny_bert, number: int) -> dict[str, str]:
    """What the command must have, by name; `number` makes outputs of their own."""
    nlp = str(folder / "nlp")
    corpus = str(folder / "corpus.txt")
    out = str(folder / f"out{number}")
    own = str(folder / "own.csv")
    return {
        "benchmark": {"pipeline": nlp, "folder": str(folder / "data")},
        "card": {"pipeline": nlp},
        "convert": {"input_path": str(folder / "pairs.csv"), "output_path": f"{out}.spacy"},
        "distill-static": {"teacher": nlp, "output": out, "--vocabulary": corpus, "--size": "2"},
        "encode": {"first": corpus, "second": f"{out}.npy", "--pipeline": nlp},
        "evaluate": {"pipeline": nlp, "data_path": str(folder / "pairs.csv")},
        "export": {"pipeline": nlp, "output": out},
        "fit-meta": {"pipeline": nlp, "corpus": corpus, "output": out},
        "import": {"source": str(tiny_bert), "output": out},
        "index add": {"pipeline": nlp, "index_path": out, "corpus": corpus},
        "index delete": {"index_path": str(folder / "index"), "ids": "1"},
        "index build": {"vectors": str(folder / "vectors"), "index_path": out},
        "init-config": {"train_path": own, "dev_path": own, "--output": f"{out}.cfg"},
        "search": {"pipeline": nlp, "corpus": corpus, "queries": "the dog"},
        "train": {"config": str(folder / "train.cfg")},
        "mine": {"pipeline": nlp, "corpus": corpus, "output": f"{out}.tsv"},
        "mine-negatives": {
            "pipeline": nlp,
            "pairs_path": str(folder / "positives.csv"),
            "output": f"{out}.tsv",
            "--corpus": corpus,
            "--num-negatives": "1",
        },
        "cluster": {"pipeline": nlp, "corpus": corpus, "output": f"{out}.tsv"},
        "visualize": {"pipeline": nlp, "texts_path": corpus, "output": f"{out}.html"},
    }[command]


def options() -> Iterator[tuple[str, str, str]]:
    """Every command, the name of each of its parameters that takes a value, and how that is
    written.
    """
    for command, made in all_commands().items():
        if command in LEFT_OUT:
            continue
        for one in made.params:
            if one.name not in ELSEWHERE and not getattr(one, "is_flag", False):
                yield command, one.name, one.opts[0]


def run(command, given, written, value):
    given = {**given, written: value}
    named = [f"{key}={text}" for key, text in given.items() if key.startswith("--")]
    plain = [text for key, text in given.items() if not key.startswith("--")]
    done = CliRunner().invoke(GROUP, [*command.split(), *named, *plain])
    return done, re.sub(r"[│╭╮╰╯─\s]+", " ", done.output)


def is_named(shown, name, option, value):
    """Whether a message has the name of the option, or of what it is for; or what was given, where
    that tells.
    """
    by_value = (
        name in BY_VALUE
        and value.split(",")[0].encode("utf8", "backslashreplace").decode() in shown
    )
    return by_value or any(said in shown for said in (option, name, OTHERWISE.get(name, name)))


@pytest.mark.parametrize("part", parts(128))
def test_options(counted, folder, tiny_bert, part, monkeypatch):
    monkeypatch.chdir(folder)
    # To load it each time is not the point
    once = {str(folder / "nlp"): spacy.load(folder / "nlp")}
    load = spacy.util.load_model

    # fit-meta adds a pipe to what it loads
    def loaded(given, **kwargs):
        return (command != "fit-meta" and once.get(str(given))) or load(given, **kwargs)

    monkeypatch.setattr(spacy, "load", loaded)
    monkeypatch.setattr(spacy.util, "load_model", loaded)
    every = [(*option, value) for option in options() for value in VALUES]
    with counted(PROMISE) as cases:
        for number, (command, name, written, value) in list(enumerate(every))[part::128]:
            what = f"{command} {written} {value!r}"
            given = arguments_of(command, folder, tiny_bert, number)
            done, shown = run(command, given, written, value)
            option = written.lstrip("-")
            keys = [f"{command} {written}", f"{command} {option}", option]
            right = next((ALLOWED[key] for key in keys if key in ALLOWED), set())
            accepted = done.exit_code == 0 or "None of the data sets asked for" in shown
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                cases.wrong(f"{what}: {type(done.exception).__name__}: {str(done.exception)[:200]}")
            elif accepted or value in right:
                cases.check(
                    accepted and value in right,
                    f"{what}: {'accepted' if accepted else shown[:200]}",
                )
            elif is_named(shown, name, option, value):
                cases.refused()
            else:
                cases.wrong(f"{what}: not named by {shown[:250]}")
