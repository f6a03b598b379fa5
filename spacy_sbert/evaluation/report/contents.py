"""The parts of a report on one model, in their order."""

from ...render.document import Document, Notes
from .cells import Results, variant_name
from .details import (
    data_table,
    graded_tables,
    missing_tables,
    other_table,
    settings_table,
    trained_tables,
    variant_tables,
)
from .paper import paper_tables


def contents(results: Results) -> Document:
    """The report on one model.

    results (dict): see evaluate_suites.
    RETURNS (Document): what was measured and how, the paper's tables, every figure, what is missing.
    """
    notes, name = Notes(), results["model"]["name"]
    tables = [settings_table(results), *paper_tables([(name, results)], notes), *graded_tables(results, notes)]
    tables += [*trained_tables(results, notes), other_table(results, notes), *variant_tables(results, notes)]
    tables += [*missing_tables(results), data_table(results)]
    shown = [table for table in tables if table.rows]
    return Document(f"Evaluation of {name}", _paragraphs(results), shown, list(notes.numbers))


def _paragraphs(results: Results) -> list[str]:
    settings = results["settings"]
    entry = {"normalization": settings["normalizations"][0], "size": settings["sizes"][0]}
    reused = sum(bool(task.get("reused")) for task in results["tasks"].values())
    paragraphs = [
        f"{len(results['tasks'])} tasks measured, {reused} of them earlier, "
        f"{len(results['skipped'])} skipped, {len(results['failed'])} failed. "
        f"Tables show vectors in the variant '{variant_name(entry)}' (normalisation, size) unless they say otherwise. "
        "Their layouts, and the paper they speak of: Reimers and Gurevych 2019, Sentence-BERT.",
        "undefined: the score is not defined, such as a correlation with predictions that are all alike. -: not "
        "measured. Numbers in brackets are notes, which stand at the end.",
    ]
    seeds = ", ".join(map(str, settings["seeds"]))
    paragraphs.append(
        f"± is the standard deviation over the seeds {seeds}, where a score depends on "
        "them; intervals are those of the first seed."
    )
    if settings["bootstrap"]:
        paragraphs.append(
            f"Intervals hold 95 % of the scores of {settings['bootstrap']} bootstrap resamples of the examples, with "
            "predictions as they are: they do not cover what another training of the model would change."
        )
    return paragraphs
