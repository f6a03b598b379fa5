"""The convention of the command line, which docs/using.md states: read from the help of all commands."""

import re
from collections import defaultdict

import pytest
import typer
from click import Context
from typer.testing import CliRunner

from spacy_sbert.cli import app

GROUP = typer.main.get_command(app)
COMMANDS = GROUP.commands
COLUMNS = 80
OTHER_MEANING = {  # an option that says something else in one command, as the thing that it is about differs
    ("mine", "--min-score"): "of the similarity of a pair, not of a table",
    ("mine", "-k"): "pairs, not texts for each query",
    ("benchmark", "--size"): "widths that are compared, not that of new vectors",
    ("benchmark", "--encoder"): "of baselines, not of what is trained",
    ("fit-meta", "--column"): "a number",
    ("fit-meta", "--pipe"): "is made",
    ("import", "--pipe"): "is made",
    ("fit-meta", "--cache"): "of encoders, not of tasks",
    ("fit-meta", "--method"): "other methods than those of cluster",
    ("train", "--output"): "a folder",
    ("search", "--output"): "a table",
    ("init-config", "--output"): "a config",
}
SHORT = {  # a letter that stands for another option in one command
    ("encode", "-g"): "--gpu-ids",
    ("train", "-c"): "--code",
    ("cluster", "-n"): "--n-clusters",
    ("card", "-n"): "--name",
    ("hub-card", "-n"): "--name",
    ("fit-meta", "-o"): "--option",
    ("fit-meta", "-m"): "--method",
    ("cluster", "-m"): "--method",
    ("visualize", "-l"): "--labels",
    ("visualize", "-t"): "--title",
    ("visualize", "-s"): "--style",
    ("benchmark", "-s"): "--suite",
    ("card", "-v"): "--version",
    ("hub-card", "-v"): "--version",
}


def shown():
    """Every command, and each of its parameters that its help lists."""
    for name, command in COMMANDS.items():
        for one in command.params:
            if one.name != "help":
                yield name, one


def long_name(one):
    names = [name for name in (*one.opts, *one.secondary_opts) if name.startswith("--")]
    return names[0] if names else one.name


def is_sentence(text):
    begins = re.match(r"[A-Z]|`[a-z]|-k 0", text) is not None
    return begins and text.endswith(".") and not text.endswith("..") and text.count("`") % 2 == 0


def test_help_reads_as_sentences():
    wrong = [(name, one.name, one.help) for name, one in shown() if not is_sentence(one.help or "")]
    assert wrong == []
    assert is_sentence(GROUP.help)


def test_commands_begin_with_a_sentence_that_is_listed_whole():
    room = COLUMNS - 2 - 4 - max(map(len, COMMANDS))  # as click leaves it
    for name, command in COMMANDS.items():
        first, _, rest = command.help.partition("\n\n")
        assert is_sentence(first) and len(first) <= room - 2, (name, first)
        assert not re.search(r"\.\s+[A-Z]", first), name  # one sentence: what is behind it would be left out
        assert not rest or rest.rstrip()[-1] in ".`", (name, rest)


@pytest.mark.parametrize("columns", [COLUMNS, 200])
def test_no_summary_is_cut(columns, monkeypatch):
    with Context(GROUP, info_name="sbert", terminal_width=columns, max_content_width=columns) as context:
        formatter = context.make_formatter()
        rows = {name: command.get_short_help_str(limit=columns - 6 - 14) for name, command in COMMANDS.items()}
        formatter.write_dl(list(rows.items()))
    for name, text in rows.items():
        assert text == COMMANDS[name].help.partition("\n\n")[0], name
        assert f"{name} " in formatter.getvalue() and text in formatter.getvalue()


def test_an_option_has_the_same_words_everywhere():
    words = defaultdict(set)
    for name, one in shown():
        if (name, long_name(one)) not in OTHER_MEANING and not {(name, letter) for letter in one.opts} & {
            *OTHER_MEANING
        }:
            words[long_name(one)].add(one.help)
    several = {option: texts for option, texts in words.items() if option.startswith("-") and len(texts) > 1}
    assert several == {}


def test_other_meanings_are_of_options_that_are_there():
    there = {(name, option) for name, one in shown() for option in one.opts}
    assert {*OTHER_MEANING, *SHORT} <= there


def test_a_letter_stands_for_one_option():
    letters = defaultdict(set)
    for name, one in shown():
        for letter in one.opts:
            if letter.startswith("-") and not letter.startswith("--"):
                if (name, letter) in SHORT:
                    assert SHORT[name, letter] in one.opts
                else:
                    letters[letter].add(long_name(one))
    assert {letter: options for letter, options in letters.items() if len(options) > 1} == {}


def test_the_pipeline_comes_first():
    for name, command in COMMANDS.items():
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        said = [(one.metavar or one.name).lower() for one in arguments]
        if "pipeline" in said and name != "hub-card":  # that begins with the repository
            assert said[0] == "pipeline", name
    assert [name for name, one in shown() if long_name(one) == "--pipeline"] == ["encode"]


def test_what_a_name_means():
    """--pipe is one of a pipeline's pipes, --name the name of a package."""
    assert {name for name, one in shown() if "--name" in one.opts} == {"card", "hub-card"}
    without = {"compare", "convert", "index", "init-config", "train"}
    assert {name for name, one in shown() if "--pipe" in one.opts} == set(COMMANDS) - without


def test_help_lists_every_option():
    assert [one.name for command in COMMANDS.values() for one in command.params if getattr(one, "hidden", False)] == []


def test_what_writes_takes_overwrite():
    with_overwrite = {name for name, one in shown() if "--overwrite" in one.opts}
    folders = {"distill-static", "export", "import"}  # which must not be there
    others = {"hub-card", "index", "train"}  # of the hub; goes on; as `spacy train` does
    assert with_overwrite == set(COMMANDS) - folders - others


def test_the_help_of_each_command_is_shown():
    for name in COMMANDS:
        done = CliRunner().invoke(app, [name, "--help"])
        assert done.exit_code == 0 and "--help" in done.output
