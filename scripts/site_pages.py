"""A hook of mkdocs: the site has the pages of the repository where they stand, so that their links
hold in both.
"""

import re
from pathlib import Path
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "benchmarks/README.md"]


def pages() -> list[Path]:
    """The files of the repository that are pages of the site; README.md is its first one."""
    return [*(ROOT / name for name in PAGES), *sorted((ROOT / "docs").glob("*.md"))]


def linked(page: Path) -> set[Path]:
    """The files of the repository that a page links to, or shows, and that are no pages: they are
    copied.
    """
    targets = re.findall(r"(?:\]\(|src=\"|srcset=\")([^)#\s\"]+)", page.read_text(encoding="utf8"))
    local = {
        (page.parent / unquote(target)).resolve()
        for target in targets
        if not re.match(r"\w+:", target)
    }
    found = {
        path
        for path in local
        if path.is_file() and path.is_relative_to(ROOT) and path.suffix != ".md"
    }
    for path in [path for path in found if path.suffix == ".html"]:
        links = re.findall(r'href="([^"#:]+)', path.read_text(encoding="utf8"))
        found |= {
            target for target in (path.parent / unquote(link) for link in links) if target.is_file()
        }
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the pages, under their paths in the repository, in place of what mkdocs found in its own
    folder.
    """
    for file in list(files):
        if file.src_dir == config.docs_dir and (
            file.is_documentation_page() or file.src_uri.startswith("images/")
        ):
            files.remove(file)
    found = pages()
    for path in [*found, *sorted({target for page in found for target in linked(page)})]:
        name = path.relative_to(ROOT).as_posix()
        files.append(File(name, str(ROOT), config.site_dir, config.use_directory_urls))
    return files
