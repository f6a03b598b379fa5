"""Reports on results of evaluations: Markdown, and HTML with plots."""

from ...render.document import Document, Notes
from ...render.html import html as render_html
from ...render.markdown import markdown as render_markdown
from . import details
from .cells import Results, variant_name
from .figures import figures
from .paper import paper_tables


def markdown(results: Results) -> str:
    """A report on one model in Markdown, its tables laid out as the Sentence-BERT paper's.

    results (dict): see evaluate_suites.
    RETURNS (str): the same for the same results. Scores are x 100; one that is not defined is "undefined".
    """
    return render_markdown(contents(results))


def html(results: Results) -> str:
    """A report on one model in HTML, with the tables of the Markdown report, and plots.

    results (dict): see evaluate_suites.
    RETURNS (str): a whole page, the same for the same results.
    """
    return render_html(contents(results), figures(results))


def contents(results: Results) -> Document:
    """The report on one model.

    results (dict): see evaluate_suites.
    RETURNS (Document): what was measured and how, the paper's tables, every figure, what is missing.
    """
    notes, name = Notes(), results["model"]["name"]
    tables = [
        details.settings_table(results),
        *paper_tables([(name, results)], notes),
        *details.graded_tables(results, notes),
        *details.trained_tables(results, notes),
        details.other_table(results, notes),
        *details.variant_tables(results, notes),
        *details.missing_tables(results),
        details.data_table(results),
    ]
    shown = [table for table in tables if table.rows]
    return Document(f"Evaluation of {name}", _paragraphs(results), shown, list(notes.numbers))


def _paragraphs(results: Results) -> list[str]:
    settings = results["settings"]
    entry = {"normalization": settings["normalizations"][0], "size": settings["sizes"][0]}
    reused = sum(bool(task.get("reused")) for task in results["tasks"].values())
    seeds = ", ".join(map(str, settings["seeds"]))
    paragraphs = [
        f"{len(results['tasks'])} tasks measured, {reused} of them earlier, "
        f"{len(results['skipped'])} skipped, {len(results['failed'])} failed. "
        f"Tables show vectors in the variant '{variant_name(entry)}' (normalisation, size) unless they say otherwise. "
        "Their layouts, and the paper they speak of: Reimers and Gurevych 2019, Sentence-BERT.",
        "undefined: the score is not defined, such as a correlation with predictions that are all alike. -: not "
        "measured. Numbers in brackets are notes, which stand at the end.",
        f"± is the standard deviation over the seeds {seeds}, where a score depends on them; intervals are those of "
        "the first seed.",
    ]
    if settings["bootstrap"]:
        paragraphs.append(
            f"Intervals hold 95 % of the scores of {settings['bootstrap']} bootstrap resamples of the examples, with "
            "predictions as they are: they do not cover what another training of the model would change."
        )
    return paragraphs
