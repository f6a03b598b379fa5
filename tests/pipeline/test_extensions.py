"""Extension attributes of pipes, beside those of other code."""

import pytest
from spacy.tokens import Doc, Span, Token

from spacy_sbert.pipeline.extensions import check_extensions, install_extensions

FACTORIES = {"sbert": {}, "sbert_meta": {"pipes": ["sbert", "second"]}}


@pytest.mark.parametrize("kind", [Doc, Span, Token])
@pytest.mark.parametrize("attribute", ["vector", "similarity", "most_similar"])
@pytest.mark.parametrize(
    "registered", [{"default": None}, {"getter": len}, {"method": lambda doc, other: 1.0}]
)
def test_attributes_of_other_code_are_refused(make_nlp, kind, attribute, registered):
    if (kind, attribute) == (Token, "most_similar"):
        return
    kind.set_extension(f"own_{attribute}", **registered)
    nlp = make_nlp()
    nlp.add_pipe("sbert", name="second")
    try:
        for factory, config in FACTORIES.items():
            expected = f"_.own_{attribute} of the pipe 'own' is"
            with pytest.raises(ValueError, match=expected):
                nlp.add_pipe(factory, name="own", config=config)
            nlp.add_pipe(factory, name="other", config=config)
            nlp.rename_pipe("other", "own")
            with pytest.raises(ValueError, match=expected):
                nlp("a cat")
            nlp.remove_pipe("own")
    finally:
        kind.remove_extension(f"own_{attribute}")


def test_attributes_of_two_pipes_of_one_name(make_nlp):
    for _ in range(2):
        make_nlp()
        install_extensions("own")
        check_extensions("own")
