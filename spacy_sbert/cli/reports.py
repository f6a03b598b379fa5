"""What `benchmark` and `compare` write beside their JSON."""

from pathlib import Path

from wasabi import msg

from .ending import fail, or_fail


def check_output(output: Path | None) -> None:
    """End the command, before hours of work, if the name of its output does not end in .json."""
    if output is not None and output.suffix != ".json":
        fail(f"Cannot save to {output}: expected a name that ends in .json; reports are written beside it")


def write_reports(output: Path, markdown: str, html: str, what: str) -> None:
    """Write the reports beside the JSON. what (str): the JSON holds."""
    from ..files.whole import write_text

    with or_fail(f"Cannot write the reports beside {output}"):
        write_text(output.with_suffix(".md"), markdown)
        write_text(output.with_suffix(".html"), html)
    msg.good(f"Saved the {what} to {output}, reports to {output.with_suffix('.md')} and .html")
