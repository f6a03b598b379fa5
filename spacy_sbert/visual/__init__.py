"""Pictures of sentence vectors in HTML, as displacy draws parses: heat maps and maps."""

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Literal, overload

from spacy.tokens import Doc, Span
from spacy.util import is_in_jupyter

from ..validation import check, validated
from . import heatmap, scatter
from .page import Picture, check_n_texts
from .projection import import_tsne

__all__ = ["render"]

Style = Literal["heatmap", "map", "tokens"]
_STYLES: dict[str, Callable[..., Picture]] = {
    "heatmap": heatmap.heatmap,
    "map": scatter.scatter,
    "tokens": heatmap.tokens,
}


_Texts = Doc | Span | Iterable[Doc | Span]
_Options = Mapping[str, object] | None


@overload
def render(
    docs: _Texts,
    style: Style = ...,
    *,
    page: bool = ...,
    jupyter: Literal[False],
    options: _Options = ...,
) -> str: ...
@overload
def render(
    docs: _Texts,
    style: Style = ...,
    *,
    page: bool = ...,
    jupyter: bool | None = ...,
    options: _Options = ...,
) -> str | None: ...
@validated
def render(
    docs: _Texts,
    style: Style = "heatmap",
    *,
    page: bool = False,
    jupyter: bool | None = None,
    options: _Options = None,
) -> str | None:
    """Draw sentence vectors: one piece of HTML that fetches nothing.

    docs (Doc, Span or Iterable of them): the texts; a single Doc or Span stands for its sentences.
    style (str): "heatmap", the similarity of every two texts, "tokens", that of the tokens of two
        texts, or "map", the texts as points on two axes.
    page (bool): whether to make a whole page rather than a fragment.
    jupyter (bool): whether to show the picture in a notebook; None to find out.
    options (dict): of the style, see heatmap, tokens and scatter.
    RETURNS (str): the HTML; None if it was shown in a notebook.
    RAISES (ValueError): for an unknown style or option, too few or too many texts, or vectors that
        are missing, of unequal widths or not finite.
    RAISES (ImportError): if what an option or a notebook needs is not installed.

    Example:
        html = render(nlp.pipe(texts), style="map", page=True, options={"labels": labels})
        Path("map.html").write_text(html, encoding="utf8")

    """
    options = options or {}
    check_options(style, options)
    picture = _STYLES[style](docs, **options)
    if jupyter is None:
        jupyter = is_in_jupyter()
    if not jupyter and page:
        return picture.page()
    if not jupyter:
        return picture.fragment()
    try:
        from IPython.display import HTML, display  # noqa: PLC0415 (not a dependency: every notebook has it)
    except ImportError as error:
        raise ImportError(
            "A notebook's picture needs IPython. Install it, or set jupyter = False."
        ) from error
    display(HTML(picture.fragment()))
    return None


def check_options(style: str, options: Mapping[str, object], *, n_texts: int | None = None) -> None:
    """Check the options of a picture, and the number of its texts, before these are encoded.

    RAISES (ValueError): for an unknown style, an option that it does not have, or more texts than
        it can show; (ImportError): if an option needs a package that is not installed.
    """
    if style not in _STYLES:
        raise ValueError(
            f"Unknown style '{style}' of a picture: expected one of {', '.join(_STYLES)}."
        )
    # The first is the texts
    known = list(signature(_STYLES[style]).parameters)[1:]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ValueError(
            f"The style '{style}' has no option '{unknown[0]}': expected some of "
            f"{', '.join(known)}."
        )
    check("projection", options.get("projection"), scatter.Projection | None)
    if options.get("projection") == "tsne":
        import_tsne()
    most = {"heatmap": heatmap.MAX_TEXTS, "map": scatter.MAX_POINTS}
    if n_texts is not None and style in most:
        check_n_texts(n_texts, 2, most[style])
