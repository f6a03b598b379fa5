"""Commands that write: bars or --quiet, what was written, and nothing that exists is replaced
without --overwrite.
"""

import json
import re
import shutil

import pytest
import spacy
from helpers.invoking import invoke
from helpers.made_results import graded, results
from spacy.language import Language

BAR = re.compile(r"\d+%\|")
HAND = "written by hand\n"
# The output, and the arguments
COMMANDS = {
    "mine": ("pairs.tsv", "nlp texts.txt pairs.tsv"),
    "mine-negatives": (
        "n.tsv",
        "nlp positives.csv n.tsv --num-negatives 1 --corpus texts.txt",
    ),
    "cluster": ("c.jsonl", "nlp texts.txt c.jsonl --min-size 2"),
    "search": ("f.tsv", "nlp texts.txt man -o f.tsv"),
    "search --index": ("index", "nlp texts.txt man --index index --kind flat"),
    "encode": ("v.npy", "nlp texts.txt v.npy"),
    "visualize": ("p.html", "nlp texts.txt p.html"),
    "visualize --limit": ("p.html", "nlp texts.txt p.html --style tokens --limit 2"),
    "convert": ("t.spacy", "pairs.csv t.spacy --max-score 2"),
    "evaluate": ("s.json", "nlp pairs.csv --output s.json"),
    "benchmark": ("r.json", "nlp data --any-count --bootstrap 0 -o r.json"),
    "compare": ("d.json", "one.json two.json -o d.json"),
    "init-config": ("my.cfg", "pairs.csv pairs.csv -o my.cfg"),
    "card": ("nlp/README.md", "nlp"),
    "import": ("new", "encoder new"),
    "export": ("new", "nlp new"),
    "distill-static": ("new", "nlp new -v texts.txt --size 2 --words 3"),
    "fit-meta": ("new", "two texts.txt new --method conc"),
}
LONG = ("benchmark", "distill-static", "fit-meta", "search --index", "visualize --limit")
WITHOUT_OVERWRITE = {"import", "export", "distill-static", "search --index"}


@pytest.fixture(scope="module")
def made(make_nlp, tiny_bert, tables, tmp_path_factory):
    at = shutil.copytree(tables, tmp_path_factory.mktemp("outputs") / "at")
    make_nlp().to_disk(at / "nlp")
    two = make_nlp()
    model = two.config["components"]["sbert"]["model"] | {"pooling": "max"}
    two.add_pipe("sbert", name="other", config={"model": model})
    two.to_disk(at / "two")
    shutil.copytree(tiny_bert, at / "encoder")
    for name in ("one", "two"):
        (at / f"{name}.json").write_text(json.dumps(results({"STS12": graded(0.5)}, name)))
    return at


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_command(command, *more, code=0):
    return invoke(command.split()[0], *COMMANDS[command][1].split(), *more, code=code)


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


each_command = pytest.mark.parametrize(
    "command", [pytest.param(c, marks=[pytest.mark.slow] * (c in LONG)) for c in COMMANDS]
)


@pytest.fixture
def output(folder, command, request):
    """What a command writes."""
    if command == "search --index":
        pytest.importorskip("faiss")
    # Which changes what it loads
    if command != "fit-meta":
        request.getfixturevalue("loaded_once")
    return folder / COMMANDS[command][0]


def says_what_it_wrote(done, command):
    return re.search(rf"(Wrote|Saved) (.* to )?{COMMANDS[command][0]}", done.stdout)


@each_command
def test_what_exists_is_not_replaced(output, command):
    if command == "search --index":
        pytest.skip("It is used")
    output.write_text(HAND)
    # It keeps a README written by hand
    is_card = command == "card"
    done = run_command(command, code=0 if is_card else 1)
    assert output.read_text() == HAND
    assert is_card or output.name in done.output


@each_command
def test_bars_are_on_standard_error_and_the_last_lines_name_what_was_written(output, command):
    """Whether or not that is a terminal."""
    if command not in WITHOUT_OVERWRITE:
        output.write_text(HAND)
    done = run_command(command, *([] if command in WITHOUT_OVERWRITE else ["--overwrite"]))
    assert BAR.search(done.stderr)
    assert not BAR.search(done.stdout)
    assert says_what_it_wrote(done, command)
    assert output.is_dir() or output.read_bytes() != HAND.encode()


@each_command
def test_quiet(output, command):
    # The card is in the pipeline
    if output.exists():
        remove(output)
    done = run_command(command, "--quiet")
    assert output.exists()
    assert not BAR.search(done.output)
    assert says_what_it_wrote(done, command)


def test_an_index_is_used_and_not_saved_again(folder, loaded_once):
    pytest.importorskip("faiss")
    assert says_what_it_wrote(run_command("search --index"), "search --index")
    assert not says_what_it_wrote(run_command("search --index"), "search --index")


def test_folder_with_other_files(folder, monkeypatch):
    """fit-meta writes a folder: in place of an empty one, or with --overwrite of one that holds a
    pipeline.
    """
    out = folder / "new"
    out.mkdir()
    run_command("fit-meta", "--quiet")
    (out / "notes.txt").write_text(HAND)
    run_command("fit-meta", "--quiet", code=1)
    run_command("fit-meta", "--quiet", "--overwrite")
    assert (out / "notes.txt").read_text() == HAND
    before = {path.name: path.stat().st_ino for path in out.iterdir()}

    def full(self, path, **_):
        (path / "meta.json").write_text("{")
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Language, "to_disk", full)
        assert "No space left" in run_command("fit-meta", "--quiet", "--overwrite", code=1).output
    # It is whole as it was
    assert {path.name: path.stat().st_ino for path in out.iterdir()} == before
    remove(out)
    out.write_text(HAND)
    run_command("fit-meta", "--quiet", "--overwrite")
    assert "sbert_meta" in spacy.load(out).pipe_names
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_benchmark_updates_only_its_own_results(folder):
    output = folder / "r.json"
    for content in ('{"a": 1}', '{"format": "spacy-sbert comparison 1", "tasks": {}}', HAND):
        output.write_text(content)
        assert "r.json" in run_command("benchmark", code=1).output
        assert output.read_text() == content
    run_command("benchmark", "--overwrite")
    for _ in range(2):
        assert list(json.loads(output.read_text())["tasks"]) == ["STSb-dev"]
        run_command("benchmark")


def test_links_and_reports_that_exist_are_refused(folder):
    (folder / "pairs.tsv").symlink_to(folder / "elsewhere.tsv")
    assert "pairs.tsv" in run_command("mine", code=1).output
    assert not (folder / "elsewhere.tsv").exists()
    for name in ("r.md", "r.html"):
        (folder / name).write_text(HAND)
        assert name in run_command("benchmark", code=1).output
        assert (folder / name).read_text() == HAND
        remove(folder / name)
