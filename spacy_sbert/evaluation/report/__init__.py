"""Reports on results of evaluations: Markdown, and HTML with plots."""

from ...render.html import html as render_html
from ...render.markdown import markdown as render_markdown
from .cells import Results
from .contents import contents
from .figures import figures


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
