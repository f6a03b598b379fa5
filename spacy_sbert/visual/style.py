"""How pictures look, on light and dark screens, wide and narrow ones, by themselves and in a notebook.

Every rule is for what stands in a figure of the class spacy-sbert. A notebook says whether its theme is light or dark;
elsewhere the system does.
"""

from .colours import DARK, DARK_LABELS, LIGHT, LIGHT_LABELS, ink, scale

LIGHT_PAGE = "color-scheme: light; --page: #fff; --text: #1d2330; --soft: #5a6275; --rule: #cfd4de; --tint: #f0f2f6;"
DARK_PAGE = "color-scheme: dark; --page: #14171d; --text: #e6e9ef; --soft: #a0a8b8; --rule: #3d4452; --tint: #1f242e;"


def _theme(page: str, stops: tuple[str, ...], labels: tuple[str, ...]) -> str:
    cells = "".join(f"--v{place}:{colour};--i{place}:{ink(colour)};" for place, colour in enumerate(scale(stops)))
    return page + cells + "".join(f"--c{place}:{colour};" for place, colour in enumerate(labels))


BRIGHT, DIM = _theme(LIGHT_PAGE, LIGHT, LIGHT_LABELS), _theme(DARK_PAGE, DARK, DARK_LABELS)
CELLS = "".join(
    f".spacy-sbert .v{place} {{ background: var(--v{place}); color: var(--i{place}); }}\n"
    for place in range(len(scale(LIGHT)))
)
LABELS = "".join(f".spacy-sbert .c{place} {{ fill: var(--c{place}); }}\n" for place in range(len(LIGHT_LABELS)))

STYLE = f"""
.spacy-sbert {{ {BRIGHT} }}
@media (prefers-color-scheme: dark) {{ .spacy-sbert {{ {DIM} }} }}
[data-jp-theme-light="true"] .spacy-sbert, .vscode-light .spacy-sbert {{ {BRIGHT} }}
[data-jp-theme-light="false"] .spacy-sbert, .vscode-dark .spacy-sbert {{ {DIM} }}
{CELLS}{LABELS}
.spacy-sbert {{ margin: 0; padding: 1rem; background: var(--page); color: var(--text); font: 14px/1.45 system-ui,
  sans-serif; text-align: left; overflow-wrap: anywhere; }}
.spacy-sbert *, .spacy-sbert {{ box-sizing: border-box; }}
.spacy-sbert figcaption {{ color: var(--soft); max-width: 48rem; margin: 0 0 .8rem; font-size: 13px; }}
.spacy-sbert figcaption strong {{ display: block; color: var(--text); font-size: 16px; }}
.spacy-sbert .scale {{ width: min(100%, 20rem); margin: 0 0 .8rem; }}
.spacy-sbert .bar {{ display: flex; height: .9rem; border: 1px solid var(--rule); }}
.spacy-sbert .bar i {{ flex: 1; }}
.spacy-sbert .marks {{ display: flex; justify-content: space-between; font-size: 12px; color: var(--soft); }}
.spacy-sbert .matrix {{ overflow: auto; max-width: 100%; max-height: max(70vh, 40rem); }}
.spacy-sbert .matrix table {{ border-collapse: separate; border-spacing: 1px; margin: 0; font-size: 12px; width: auto;
  border: 0; table-layout: auto; color: var(--text); }}
.spacy-sbert .matrix tr, .spacy-sbert .matrix thead {{ background: none; border: 0; }}
.spacy-sbert .matrix th, .spacy-sbert .matrix td {{ padding: 0; border: 0; vertical-align: middle; }}
.spacy-sbert .matrix th {{ background: var(--page); color: var(--text); font-weight: 400; position: sticky; z-index: 1;
  text-align: left; }}
.spacy-sbert .matrix thead td {{ background: var(--page); position: sticky; top: 0; left: 0; z-index: 2; }}
.spacy-sbert .matrix thead th {{ top: 0; vertical-align: bottom; text-align: center; }}
.spacy-sbert .matrix thead div {{ writing-mode: vertical-rl; transform: rotate(180deg); max-height: 10rem;
  margin: 0 auto .3rem; line-height: 1.2; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.spacy-sbert .matrix tbody th {{ left: 0; }}
.spacy-sbert .matrix tbody th div {{ display: flex; gap: .5em; width: min(22rem, 38vw); padding-right: .5rem; }}
.spacy-sbert .matrix tbody th span {{ flex: 1; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.spacy-sbert .matrix b {{ color: var(--soft); font-weight: 600; }}
.spacy-sbert .matrix tbody b {{ min-width: 1.4em; text-align: right; }}
.spacy-sbert .matrix tbody td {{ min-width: 2.7em; height: 2em; text-align: center; cursor: default;
  font-variant-numeric: tabular-nums; }}
.spacy-sbert .matrix th.here, .spacy-sbert .matrix th.here b {{ background: var(--tint); color: var(--text);
  font-weight: 600; }}
.spacy-sbert .matrix td.here {{ outline: 2px solid var(--text); outline-offset: -1px; position: relative; }}
.spacy-sbert .pair {{ margin-top: .8rem; padding: .6rem .8rem; border: 1px solid var(--rule); max-width: 72rem;
  max-height: 45vh; overflow: auto; position: sticky; bottom: 0; z-index: 3; background: var(--page); }}
.spacy-sbert .pair:empty {{ display: none; }}
.spacy-sbert .pair p {{ margin: .3rem 0 0; padding: 0 0 0 2em; text-indent: -2em; line-height: 1.7; color: inherit; }}
.spacy-sbert .pair b {{ display: inline-block; min-width: 2em; text-indent: 0; color: var(--soft); }}
.spacy-sbert .pair span {{ padding: .1em .12em; border-radius: 2px; text-indent: 0; }}
.spacy-sbert .pair small {{ color: var(--soft); font-size: 12px; }}
.spacy-sbert .map {{ max-width: 50rem; }}
.spacy-sbert .plot {{ position: relative; }}
.spacy-sbert .plot svg {{ display: block; width: 100%; height: auto; }}
.spacy-sbert .plot:focus-visible {{ outline: 2px solid var(--soft); }}
.spacy-sbert svg text {{ fill: var(--text); font: 12px system-ui, sans-serif; }}
.spacy-sbert svg .name {{ fill: var(--soft); }}
.spacy-sbert svg .grid {{ fill: none; stroke: var(--rule); opacity: .6; }}
.spacy-sbert svg .frame {{ fill: none; stroke: var(--rule); }}
.spacy-sbert svg .points {{ stroke: var(--page); stroke-width: .8; opacity: .9; }}
.spacy-sbert svg .points.faint {{ opacity: .12; }}
.spacy-sbert svg .ring {{ fill: none; stroke: var(--text); stroke-width: 2; pointer-events: none; }}
.spacy-sbert .tip {{ position: absolute; z-index: 3; width: max-content; max-width: min(26rem, 100%); padding: .4rem
  .6rem; background: var(--page); color: var(--text); border: 1px solid var(--soft); border-radius: 4px;
  font-size: 13px; box-shadow: 0 2px 8px rgb(0 0 0 / .3); pointer-events: none; }}
.spacy-sbert .tip[hidden] {{ display: none; }}
.spacy-sbert .tip b {{ display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }}
.spacy-sbert .map ul.labels {{ display: flex; flex-wrap: wrap; gap: .3rem; margin: .6rem 0 0; padding: 0;
  list-style: none; }}
.spacy-sbert .map ul.labels li {{ margin: 0; }}
.spacy-sbert .labels button {{ display: flex; align-items: center; gap: .35rem; padding: .15rem .5rem; font: inherit;
  font-size: 13px; color: var(--text); background: var(--page); border: 1px solid var(--rule); border-radius: 4px;
  cursor: pointer; text-align: left; }}
.spacy-sbert .labels button:hover {{ background: var(--tint); }}
.spacy-sbert .labels button[aria-pressed="true"] {{ border-color: var(--text); background: var(--tint); }}
.spacy-sbert .labels svg {{ width: 14px; height: 14px; flex: none; }}
.spacy-sbert .labels span {{ max-width: min(20rem, 60vw); overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }}
.spacy-sbert .labels small {{ color: var(--soft); font-size: 12px; }}
.spacy-sbert-page {{ margin: 0; background: #fff; }}
@media (prefers-color-scheme: dark) {{ .spacy-sbert-page {{ background: #14171d; }} }}
@media (max-width: 40rem) {{ .spacy-sbert .plot text {{ display: none; }}
  .spacy-sbert .plot text.name {{ display: inline; font-size: 22px; }} }}
@media print {{ .spacy-sbert .matrix {{ overflow: visible; max-height: none; }} }}
"""
