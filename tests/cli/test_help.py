"""The convention of the command line, which docs/using.md states: read from the help of all commands."""

from collections import defaultdict

import typer
from typer.testing import CliRunner

from spacy_sbert.cli import app

COMMANDS = typer.main.get_command(app).commands
SHORT = {  # letters with another meaning in one command
    ("encode", "-g"): "--gpu-ids",
    ("train", "-c"): "--code",
    ("cluster", "-n"): "--n-clusters",
    **{(command, "-n"): "--name" for command in ("card", "hub-card")},
    **{(command, "-v"): "--version" for command in ("card", "hub-card")},
    ("fit-meta", "-o"): "--option",
    **{(command, "-m"): "--method" for command in ("fit-meta", "cluster")},
    ("visualize", "-l"): "--labels",
    ("visualize", "-t"): "--title",
    ("visualize", "-s"): "--style",
    ("benchmark", "-s"): "--suite",
}


def parameters():
    return [(name, one) for name, command in COMMANDS.items() for one in command.params if one.name != "help"]


def with_option(option):
    return {name for name, one in parameters() if option in one.opts}


def test_every_parameter_has_help_and_is_listed():
    assert [(name, one.name) for name, one in parameters() if not one.help or getattr(one, "hidden", False)] == []
    for name in COMMANDS:
        done = CliRunner().invoke(app, [name, "--help"])
        assert done.exit_code == 0 and "--help" in done.output


def test_letter_means_one_option():
    letters = defaultdict(set)
    for name, one in parameters():
        for letter in one.opts:
            if letter.startswith("-") and not letter.startswith("--"):
                long = next(option for option in one.opts if option.startswith("--"))
                assert SHORT.get((name, letter), long) == long
                letters[letter].update({long} if (name, letter) not in SHORT else ())
    assert {letter: options for letter, options in letters.items() if len(options) > 1} == {}


def test_options_that_all_commands_share():
    assert set(COMMANDS) - with_option("--quiet") == {"train"}  # it has a log
    assert set(COMMANDS) - with_option("--pipe") == {"compare", "convert", "index", "init-config", "train"}
    # import, export and distill-static write new folders; index resumes; hub-card and train have other ways
    folders = {"distill-static", "export", "import", "hub-card", "index", "train"}
    assert set(COMMANDS) - with_option("--overwrite") == folders
    loading = with_option("--pipe") - {"import"}
    assert loading <= with_option("--code") and loading - {"card", "export", "hub-card"} <= with_option("--gpu-id")
    assert with_option("--id-column") == {"cluster", "encode", "mine", "search"}  # which keep rows
    assert with_option("--name") == {"card", "hub-card"} and with_option("--pipeline") == {"encode"}


def test_pipeline_is_the_first_argument():
    for name, command in COMMANDS.items():
        arguments = [(one.metavar or one.name).lower() for one in command.params if one.param_type_name == "argument"]
        if "pipeline" in arguments and name != "hub-card":  # which begins with the repository
            assert arguments[0] == "pipeline", name
