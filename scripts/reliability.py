"""The table of docs/reliability.md: what the counted cases of `make reliability` came to.

python scripts/reliability.py metrics/reliability.json
"""

import json
import sys
from pathlib import Path


def table(counts: dict[str, dict[str, int]]) -> str:
    """Markdown: a row for each promise, and the sum."""
    columns = ("right", "refused", "wrong")
    rows = [
        (promise, [found.get(column, 0) for column in columns])
        for promise, found in sorted(counts.items())
    ]
    rows.append(("**all**", [sum(found[i] for _, found in rows) for i in range(len(columns))]))
    lines = ["| promise | cases | right | refused by name | wrong |", "|---|---|---|---|---|"]
    for promise, found in rows:
        lines.append(f"| {promise} | {sum(found):,} | {' | '.join(f'{n:,}' for n in found)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text(encoding="utf8"))))
