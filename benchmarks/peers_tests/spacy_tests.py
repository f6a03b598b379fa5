"""Run spaCy's own tests with an `sbert` pipe in every pipeline, and count what fails that passes
without it.

    python benchmarks/peers_tests/spacy_tests.py --scratch FOLDER [doc pipeline serialize training
    test_language.py]

Each pipeline that a test makes gets the pipe when it is made, as its first one. Both runs are
processes of their own.
"""

import argparse
import json
import os
import subprocess
import sys
from fnmatch import fnmatch
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

PARTS = (
    "doc",
    "pipeline",
    "serialize",
    "training",
    "test_language.py",
    "test_pickles.py",
    "test_misc.py",
)
# The environment variable with its folder
ENCODER = "PEERS_TESTS_ENCODER"
WORDS = (
    "a",
    "the",
    "man",
    "cat",
    "dog",
    "is",
    "was",
    "this",
    "that",
    "he",
    "she",
    ".",
    ",",
    "!",
    "##s",
    "##ed",
)
# Tests that fail only because there is one pipe more, or because it does what it is for.
_ONE_MORE = "the names or the config of all pipes: there is one pipe more"
NAMED = {
    "*test_issue5152*": "the Spans of a blank pipeline have vectors",
    "*test_issue6815_3*": "a Span has the vector of its encoder, not that of the vocabulary",
    "*test_pass_doc_to_pipeline?2?": "W109: hooks of Docs do not travel to other processes",
    "*test_language_from_config_before_after_init*": _ONE_MORE,
    "*test_create_nlp_from_config*": _ONE_MORE,
    "*test_config_nlp_roundtrip_bytes_disk*": _ONE_MORE,
    "*test_serialize_config_language_specific*": _ONE_MORE,
    "*test_config_overrides*": _ONE_MORE,
    "*test_serialize_pipeline_disable_enable*": _ONE_MORE,
    "*test_load_model_blank_shortcut*": _ONE_MORE,
    "*test_util_dot_section*": _ONE_MORE,
    "*test_issue1654*": _ONE_MORE,
    "*test_replace_last_pipe*": _ONE_MORE,
    "*test_rename_pipe*": _ONE_MORE,
    "*test_remove_pipe*": _ONE_MORE,
    "*test_select_pipes_list_arg*": _ONE_MORE,
    "*test_add_lots_of_pipes*": _ONE_MORE,
    "*test_pipe_labels*": _ONE_MORE,
    "*test_add_pipe_before_after*": _ONE_MORE,
    "*test_disable_enable_pipes*": _ONE_MORE,
    "*test_pipe_methods_frozen*": _ONE_MORE,
    "*test_enable_disable_conflict_with_config*": _ONE_MORE,
    "*test_pipe_factories_from_source_config*": _ONE_MORE,
    "*test_pipe_factories_config_excludes_nlp*": _ONE_MORE,
    "*test_component_decorator_assigns*": _ONE_MORE,
    "*test_entity_ruler_no_patterns_warns*": _ONE_MORE,
    "*test_nel_to_bytes*": _ONE_MORE,
    "*test_span_ruler_no_patterns_warns*": _ONE_MORE,
    "*test_tok2vec_listener?False?": _ONE_MORE,
    "*test_tok2vec_listener?True?": _ONE_MORE,
    "*test_tok2vec_listener_callback*": _ONE_MORE,
    "*test_tok2vec_listeners_textcat*": _ONE_MORE,
    "*test_language_factories_scores*": "one pipe more has a share of the score weights",
    "*test_console_logger*": "the loss of one pipe more is missing in the log",
    "*test_issue5082*": "a token has the vector of its encoder, not that of the vocabulary",
}


def make_encoder(folder: Path) -> str:
    """Save a random BERT of two layers, and return its folder."""
    # The other process needs none
    from transformers import (
        BertConfig,
        BertModel,
        BertTokenizerFast,
    )

    folder.mkdir(parents=True, exist_ok=True)
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocab = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *WORDS,
        *letters,
        *(f"##{letter}" for letter in letters),
    ]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(vocab)), encoding="utf8")
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=512).save_pretrained(folder)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    BertModel(BertConfig(vocab_size=len(dict.fromkeys(vocab)), **sizes)).save_pretrained(folder)
    return str(folder)


def add_sbert_everywhere() -> None:
    """Give every Language of this process an `sbert` pipe when it is made."""
    # Only in the process of the tests
    from spacy.language import Language

    config: Any = {"model": {"name": os.environ[ENCODER]}}
    plain_init, plain_from_config = Language.__init__, Language.from_config.__func__  # type: ignore[attr-defined]
    depth = [0]

    def add(nlp: Language) -> None:
        if not depth[0] and "sbert" not in nlp.component_names:
            nlp.add_pipe("sbert", config=config, first=True)

    @wraps(plain_init)
    def init(self: Language, *args: Any, **kwargs: Any) -> None:
        plain_init(self, *args, **kwargs)
        add(self)

    @wraps(plain_from_config)
    def from_config(cls: type[Language], *args: Any, **kwargs: Any) -> Language:
        depth[0] += 1
        try:
            nlp = plain_from_config(cls, *args, **kwargs)
        finally:
            depth[0] -= 1
        add(nlp)
        return nlp

    Language.__init__ = init  # type: ignore[method-assign]
    Language.from_config = classmethod(from_config)  # type: ignore[assignment,method-assign]


class Outcomes:
    """A plugin of pytest: the outcome of each test, and the first line of the error."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            crash = getattr(report.longrepr, "reprcrash", None)
            self.found[report.nodeid] = [report.outcome, getattr(crash, "message", "")[:300]]


def run_tests(parts: list[str], output: Path, *, with_sbert: bool) -> None:
    # Only in the process of the tests
    import spacy.tests

    if with_sbert:
        add_sbert_everywhere()
    outcomes = Outcomes()
    root = Path(spacy.tests.__file__).parent
    settings = output.with_suffix(".ini")
    settings.write_text(
        "[pytest]\nmarkers =\n    issue: of a number\n    slow: slow\n", encoding="utf8"
    )
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--tb=no",
        "-c",
        str(settings),
        "--rootdir",
        str(root),
    ]
    pytest.main([*(str(root / part) for part in parts), *options], plugins=[outcomes])
    output.write_text(json.dumps(outcomes.found), encoding="utf8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, help="folders and files of spacy.tests")
    parser.add_argument(
        "--scratch", type=Path, required=True, help="a folder for the encoder and the outcomes"
    )
    parser.add_argument(
        "--only", choices=("with", "without"), help="one of the two runs, in this process"
    )
    arguments = parser.parse_args()
    scratch, parts = arguments.scratch, list(arguments.parts)
    files = {kind: scratch / f"{kind}.json" for kind in ("without", "with")}
    if arguments.only:
        run_tests(parts, files[arguments.only], with_sbert=arguments.only == "with")
        return 0
    os.environ[ENCODER] = make_encoder(scratch / "encoder")
    for kind in files:
        command = [
            sys.executable,
            "-W",
            "ignore",
            __file__,
            *parts,
            "--scratch",
            str(scratch),
            "--only",
            kind,
        ]
        subprocess.run(command, check=True)
    without, found = (json.loads(file.read_text(encoding="utf8")) for file in files.values())
    counts = {"passed in both": 0, "skipped or failed in both": 0, "named": 0, "other": 0}
    for test, (outcome, message) in found.items():
        name = test.rpartition("spacy/tests/")[2]
        named = next((why for pattern, why in NAMED.items() if fnmatch(name, pattern)), None)
        if outcome == without.get(test, [""])[0]:
            kind = "passed in both" if outcome == "passed" else "skipped or failed in both"
        else:
            kind = "named" if named else "other"
            print(kind, name, named or message.replace("\n", " "))
        counts[kind] += 1
    print(json.dumps(counts, indent=2))
    return int(counts["other"] > 0)


if __name__ == "__main__":
    sys.exit(main())
