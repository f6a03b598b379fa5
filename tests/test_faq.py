"""docs/faq.md: its blocks print what their comments say, and what it says of unknown wordpieces and of limits holds."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parent.parent / "docs" / "faq.md").read_text(encoding="utf8")
VALUE = re.compile(r"[\d(\[]|True|False")  # and no prose
PRINT = re.compile(r"^\s*print\(.*?\)(?:  # (.*))?$", re.MULTILINE)


@pytest.mark.filterwarnings("ignore")
def test_blocks_print_what_their_comments_say(capsys):
    namespace: dict = {}
    said = []
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(block, "faq.md", "exec"), namespace)
        printed, comments = capsys.readouterr().out.splitlines(), PRINT.findall(block)
        said += [(text, line) for line, text in zip(printed, comments, strict=True) if VALUE.match(text)]
    assert len(said) >= 10 and [(text, line) for text, line in said if text.split(":")[0] != line] == []


def test_there_are_fifteen_questions_of_two_to_five_sentences():
    answers = re.split(r"^## .*\?$", TEXT, flags=re.MULTILINE)[1:]
    assert len(answers) >= 15
    for answer in answers:
        prose = re.sub(r"```.*?```", "", answer, flags=re.DOTALL)
        assert 2 <= len(re.findall(r"[.:?](?=\s|$)", prose)) <= 9, answer


@pytest.mark.parametrize(("first", "second"), [("😀", "🚀"), ("I am happy 😀", "I am happy 😡"), ("👍", "[UNK]")])
def test_words_without_a_wordpiece_are_one_unknown_wordpiece(minilm, first, second):
    assert minilm(first).has_vector
    assert minilm(first).similarity(minilm(second)) == pytest.approx(1.0, abs=1e-6)


def test_words_that_can_be_split_are_not(minilm):
    assert minilm("asdkjhqwe").similarity(minilm("zxcmnb")) < 0.5
