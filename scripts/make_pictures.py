"""Make the pictures of README.md and docs/pictures.md: docs/images/{map,heatmap}-{light,dark}.png.

    python scripts/make_pictures.py

It draws texts with all-MiniLM-L6-v2, and needs the extras `minilm` and `visual`, and a chromium on
the PATH.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import spacy

from spacy_sbert import visual
from spacy_sbert.files.tables import read_texts

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "images"
SAMPLE = ROOT / "assets" / "topics-dev.tsv"
TEXTS = [
    "A man is eating food.",
    "Someone is having a meal.",
    "The chef is preparing dinner.",
    "Shares fell on Monday.",
    "The stock market dropped.",
    "The bank raised its interest rates.",
    "A girl is playing the guitar.",
    "The band gave a concert last night.",
]
# Of the windows, in pixels
SIZES = {"map": (840, 800), "heatmap": (840, 690)}
# As Chromium numbers them
THEMES = {"light": 1, "dark": 0}


def pages() -> dict[str, str]:
    """Return the HTML of each picture by its name."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert")
    texts, labels = read_texts(SAMPLE, column="text", label="label")
    points = visual.render(
        nlp.pipe(texts), "map", page=True, jupyter=False, options={"labels": labels}
    )
    return {
        "map": str(points),
        "heatmap": str(visual.render(nlp.pipe(TEXTS), "heatmap", page=True, jupyter=False)),
    }


def main() -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("No browser found: put chromium on the PATH.")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, page in pages().items():
            file = Path(folder, f"{name}.html")
            file.write_text(page, encoding="utf8")
            width, height = SIZES[name]
            for theme, number in THEMES.items():
                options = [
                    *(
                        "--headless",
                        "--no-sandbox",
                        "--disable-gpu",
                        "--hide-scrollbars",
                        "--no-first-run",
                    ),
                    f"--user-data-dir={folder}/profile",
                    f"--window-size={width},{height}",
                    f"--blink-settings=preferredColorScheme={number}",
                    f"--screenshot={FOLDER / f'{name}-{theme}.png'}",
                ]
                subprocess.run(
                    [browser, *options, file.as_uri()], check=True, capture_output=True, timeout=120
                )


if __name__ == "__main__":
    main()
