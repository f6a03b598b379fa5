"""Reports on results of evaluations: Markdown, and HTML with plots."""

from ...render.document import Document, Notes
from ...render.html import html as render_html
from ...render.markdown import markdown as render_markdown
from ...render.terminal import terminal as render_terminal
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


def terminal(results: Results, width: int) -> str:
    """A report on one model in plain tables, without how it was measured; see markdown.

    width (int): the columns of the terminal.
    """
    return render_terminal(contents(results), width)


def html(results: Results) -> str:
    """A report on one model in HTML, with the tables of the Markdown report, and plots.

    results (dict): see evaluate_suites.
    RETURNS (str): a whole page, the same for the same results.
    """
    return render_html(contents(results), figures(results))


def contents(results: Results) -> Document:
    """The report on one model.

    results (dict): see evaluate_suites.
    RETURNS (Document): the paper's tables, every figure, what is missing; then how it was measured.
    """
    notes, name = Notes(), results["model"]["name"]
    tables = [
        *paper_tables([(name, results)], notes),
        *details.graded_tables(results, notes),
        *details.trained_tables(results, notes),
        details.other_table(results, notes),
        *details.variant_tables(results, notes),
        *details.missing_tables(results),
    ]
    how = [details.classifiers_table(results), details.settings_table(results), details.data_table(results)]
    shown, how = ([table for table in part if table.rows] for part in (tables, how))
    title, notes_of = f"Evaluation of {name}", list(notes.numbers)
    return Document(title, [_summary(results)], shown, notes_of, _remarks(results), how)


def _summary(results: Results) -> str:
    settings = results["settings"]
    reused = sum(bool(task.get("reused")) for task in results["tasks"].values())
    counts = {"of them earlier": reused, "skipped": len(results["skipped"]), "failed": len(results["failed"])}
    said = [f"{len(results['tasks'])} tasks measured", *(f"{n} {words}" for words, n in counts.items() if n)]
    summary = ", ".join(said) + ". Scores are x 100."
    if len(settings["normalizations"]) + len(settings["sizes"]) > 2:
        entry = {"normalization": settings["normalizations"][0], "size": settings["sizes"][0]}
        summary += f" Tables show the variant '{variant_name(entry)}' (normalisation, size), unless they say otherwise."
    return summary


def _remarks(results: Results) -> list[str]:
    settings, tasks = results["settings"], results["tasks"].values()
    remarks = [
        "undefined: the score is not defined, such as a correlation with predictions that are all alike. -: not "
        "measured. Numbers in brackets are notes. Layouts, and the paper they speak of: Reimers and Gurevych 2019, "
        "Sentence-BERT.",
    ]
    if details.has_deviations(results):
        seeds = ", ".join(map(str, settings["seeds"]))
        remarks.append(
            f"± is the standard deviation over the seeds {seeds}, where a score depends on them; intervals are of the "
            "first seed."
        )
    if any(task["intervals"] for task in tasks):
        remarks.append(
            f"Intervals hold 95 % of the scores of {settings['bootstrap']} bootstrap resamples of the examples, with "
            "predictions as they are: they do not cover what another training of the model would change."
        )
    return remarks
