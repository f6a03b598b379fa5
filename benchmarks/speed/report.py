"""Print the table of all speed benchmarks, what was measured beside what was asked for, and write
it as Markdown.

Usage: python benchmarks/speed/report.py [FOLDER_OF_RESULTS]
(by default results/ beside this file)
Benchmarks that have not been run, and rows whose variants have not been, are left out.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import markdown, ratio

Result = Mapping[str, Any]
# What was measured, in words, and whether it is what was asked for
Found = tuple[str, bool]
ENCODING = ("sentences", "mixed", "shared", "shared_sentences", "alone")
FILES = (*ENCODING, "train", "step", "search", "memory", "growth", "first_vector")
UNITS = {
    "sentences": "sentences",
    "mixed": "texts",
    "shared": "texts",
    "shared_sentences": "sentences",
    "train": "pairs",
}
# By how much memory after the first sample may grow
FLAT = 0.02
FULL, BEST = ("peer-float32-32",), ("peer-bfloat16-32", "peer-bfloat16-128")
BARE = ", `token_vectors = false`"
STOCK = "spacy-transformers float32"
AMX = "amx_bf16"
PEER, REDUCED = "sentence-transformers float32", "sentence-transformers bfloat16, its best batch"


@dataclass(frozen=True)
class Row:
    """A figure with its target.

    file: whose results it is of. what, against, target: in words. find: the figure, of the results;
        a KeyError where it was not measured.
    """

    file: str
    what: str
    against: str
    target: str
    find: Callable[[Result], Found]


def faster(
    ours: str, theirs: tuple[str, ...], least: float | None = None, with_amx: float | None = None
) -> Callable[[Result], Found]:
    """How many times as fast a variant is as the fastest of others; with_amx: the target on a
    processor with AMX.
    """

    def find(result: Result) -> Found:
        timings = result["timings"]
        best = min(
            (timings[name] for name in theirs if name in timings),
            key=lambda one: one["median"],
            default=None,
        )
        middle, low, high = ratio(timings[ours], timings[theirs[0]] if best is None else best)
        asked = with_amx if with_amx and AMX in result["environment"]["flags"] else least
        return f"{middle:.2f}x ({low:.2f} to {high:.2f})", asked is None or middle >= asked

    return find


def largest_difference(name: str, most: float) -> Callable[[Result], Found]:
    """How far any number of a variant's vectors is from the reference's, at most."""

    def find(result: Result) -> Found:
        found = result["quality"][name]["largest_difference"]
        return f"{found:.1e}", found <= most

    return find


def lowest_cosine(name: str, least: float) -> Callable[[Result], Found]:
    """How far any of a variant's vectors is turned from the reference's, at most."""

    def find(result: Result) -> Found:
        found = result["quality"][name]["lowest_cosine"]
        return f"{found:.5f}", found >= least

    return find


def spearman(name: str, other: str, most: float) -> Callable[[Result], Found]:
    """The correlation of one on STS benchmark dev, and its difference from another's."""

    def find(result: Result) -> Found:
        ours, theirs = (result["quality"][key]["sts_spearman"] for key in (name, other))
        return f"{ours:.2f} against {theirs:.2f} ({ours - theirs:+.3f})", abs(ours - theirs) <= most

    return find


def memory(result: Result) -> Found:
    """Resident memory and its peak so far at the first sample after the start, and the most of
    later ones.
    """
    (_, start, _), (first, at_first, peak), *later = result["samples"]
    most, (last, _, highest) = max(one[1] for one in later), later[-1]
    words = f"{start:.0f} MB at the start; {at_first:.0f} after {first}, peak {peak:.0f}; "
    words += f"at most {most:.0f} up to {last}, peak {highest:.0f}"
    return words, highest <= (1 + FLAT) * peak


def search(result: Result) -> Found:
    """How long the most similar pair takes to be found."""
    seconds = result["most_similar_pairs"]["median_seconds"]
    return f"{seconds:.3g} s among {result['sentences']} vectors", seconds < 1


def sooner(name: str) -> Callable[[Result], Found]:
    """How many times as soon as sentence-transformers' the first vector is there."""

    def find(result: Result) -> Found:
        found = result["elapsed"]
        (middle, low, high), ours, theirs = (
            found["ratios"][name],
            found["processes"][name],
            found["processes"]["peer"],
        )
        seconds = f"{ours['median']:.1f} s against {theirs['median']:.1f} s"
        return f"{middle:.2f}x ({low:.2f} to {high:.2f}), {seconds}", middle >= 1

    return find


def rows() -> Iterator[Row]:
    """All rows, in the order of the table."""
    yield from sentence_rows("`nlp.pipe`")
    yield from sentence_rows("`nlp.pipe`", BARE)
    yield Row("sentences", "`encode`, float32", PEER, "", faster("encode-float32", FULL))
    name, what = "encode-bfloat16", "`encode`, bfloat16"
    yield Row("sentences", what, PEER, "4.4x, with AMX 6x", faster(name, FULL, 4.4, 6.0))
    yield Row("sentences", what, REDUCED, "2.2x, with AMX 2.3x", faster(name, BEST, 2.2, 2.3))
    for precision, least in (("float32", 0.95), ("bfloat16", 0.92)):
        find = faster(f"pipe-{precision}", (f"encode-{precision}",), least)
        yield Row(
            "sentences", f"`nlp.pipe`, {precision}", f"`encode`, {precision}", f"{least}x", find
        )
    yield from quality_rows()
    yield from mixed_rows()
    yield from mixed_rows(BARE)
    what, stock = "sentences, shared transformer", ("stock-float32",)
    yield Row("shared_sentences", f"{what}, float32", STOCK, "", faster("shared-float32", stock))
    yield Row(
        "shared_sentences",
        f"{what}, bfloat16",
        STOCK,
        "3.5x",
        faster("shared-bfloat16", stock, 3.5),
    )
    for name, way in (
        ("doc-float32", "a Doc"),
        ("encode-float32", "`encode`"),
        ("encode-bfloat16", "`encode`"),
    ):
        what = f"one sentence a call, {way}, {name.split('-')[1]}"
        yield Row("alone", what, PEER, "1x", faster(name, ("peer-float32",), 1.0))
    for precision, least in (("float32", 2.1), ("bfloat16", 2.9)):
        name, peer = f"train-{precision}", "peer-float32"
        yield Row(
            "train", f"training, {precision}", PEER, f"{least}x", faster(name, (peer,), least)
        )
        what = f"training, {precision}: STSb dev after an epoch"
        yield Row("train", what, PEER, "within 0.3", spearman(name, peer, 0.3))
    yield Row("search", "most similar pair", "", "under 1 s", search)
    yield Row("memory", "memory of `nlp.pipe`", "", "flat after the first", memory)
    for name, what in (
        ("encode", "`encode`"),
        ("doc", "a Doc"),
        ("saved", "a saved pipeline's Doc"),
    ):
        yield Row(
            "first_vector",
            f"first vector of a process, {what}",
            "sentence-transformers",
            "1x",
            sooner(name),
        )


def sentence_rows(what: str, bare: str = "") -> Iterator[Row]:
    """The speed on sentences; bare: without the vectors of tokens."""
    end = "-rows" if bare else ""
    reduced = f"pipe-bfloat16{end}"
    yield Row(
        "sentences", f"{what}, float32{bare}", PEER, "1.4x", faster(f"pipe-float32{end}", FULL, 1.4)
    )
    yield Row("sentences", f"{what}, bfloat16{bare}", PEER, "", faster(reduced, FULL))
    yield Row("sentences", f"{what}, bfloat16{bare}", REDUCED, "", faster(reduced, BEST))


def mixed_rows(bare: str = "") -> Iterator[Row]:
    """The speed on mixed lengths; bare: without the vectors of tokens."""
    end = "-rows" if bare else ""
    padded, stock, theirs = ("padded-float32",), (f"stock-float32{end}",), STOCK
    what, shared = "mixed lengths", "mixed lengths, shared transformer"
    order = "float32 in the given order, padded"
    yield Row("mixed", f"{what}, bfloat16{bare}", PEER, "", faster(f"pipe-bfloat16{end}", FULL))
    yield Row(
        "mixed", f"{what}, float32{bare}", order, "1.6x", faster(f"pipe-float32{end}", padded, 1.6)
    )
    yield Row(
        "shared", f"{shared}, float32{bare}", theirs, "", faster(f"shared-float32{end}", stock)
    )
    yield Row(
        "shared",
        f"{shared}, bfloat16{bare}",
        theirs,
        "2.4x",
        faster(f"shared-bfloat16{end}", stock, 2.4),
    )


def quality_rows() -> Iterator[Row]:
    """How near the vectors are to those of sentence-transformers in float32."""
    for name in ("pipe", "encode"):
        what = f"`{'nlp.pipe' if name == 'pipe' else name}`"
        full, reduced = f"{name}-float32", f"{name}-bfloat16"
        yield Row(
            "sentences",
            f"{what}, float32: largest difference",
            PEER,
            "1e-5",
            largest_difference(full, 1e-5),
        )
        yield Row(
            "sentences",
            f"{what}, bfloat16: lowest cosine",
            PEER,
            "0.9995",
            lowest_cosine(reduced, 0.9995),
        )
        what = f"{what}, bfloat16: STSb dev Spearman"
        yield Row("sentences", what, PEER, "within 0.05", spearman(reduced, FULL[0], 0.05))


def targets(results: Mapping[str, Result]) -> str:
    """The table of what was measured beside what was asked for."""
    table = []
    for row in rows():
        try:
            words, reached = row.find(results[row.file])
        except KeyError:
            continue
        table.append(
            (
                row.what,
                row.against,
                words,
                row.target,
                ("yes" if reached else "no") if row.target else "",
            )
        )
    return markdown(("what", "against", "measured", "target", "reached"), table)


def figures(results: Mapping[str, Result]) -> str:
    """The table of the speed of every variant."""
    table = [
        (
            name,
            variant,
            *(f"{found['items'] / found[key]:.0f}" for key in ("median", "max", "min")),
            UNITS.get(name, "sentences"),
        )
        for name, result in results.items()
        for variant, found in result.get("timings", {}).items()
    ]
    return markdown(("benchmark", "variant", "a second", "lowest", "highest", "of"), table)


def steps(results: Mapping[str, Result]) -> str:
    """The table of where a training step's time goes."""
    found = results.get("step", {}).get("step", {})
    table = [
        (
            name,
            f"{one['ms_a_step']:.1f}",
            *(f"{100 * share:.1f} %" for share in one["shares"].values()),
        )
        for name, one in found.items()
    ]
    parts = next(iter(found.values()))["shares"] if found else ()
    return markdown(("training", "ms a step", *parts), table) if table else ""


def searches(results: Mapping[str, Result]) -> str:
    """The table of searches and clusters beside what other libraries take."""
    table = [
        (
            what,
            way,
            f"{1000 * found['median'] / found['items']:.1f}",
            f"{ratio(ways['ours'], found)[0]:.2f}x",
        )
        for what, ways in results.get("search", {}).get("beside", {}).items()
        for way, found in ways.items()
    ]
    return markdown(("search", "by", "ms", "ours is as fast"), table) if table else ""


def grown(results: Mapping[str, Result]) -> str:
    """The table of how the cost grows."""
    table = [
        (
            kind,
            value,
            name,
            f"{found['items']}",
            f"{found['median']:.2f}",
            f"{found['per_second']:.0f}",
        )
        for kind, lines in results.get("growth", {}).get("growth", {}).items()
        for name, line in lines.items()
        for value, found in line.items()
    ]
    return (
        markdown(("by", "value", "precision", "texts", "seconds", "a second"), table)
        if table
        else ""
    )


def machines(results: Mapping[str, Result]) -> str:
    """On what it was measured, each machine once."""
    found = dict.fromkeys(
        json.dumps(result["environment"]) for result in results.values() if "environment" in result
    )
    lines = []
    for here in map(json.loads, found):
        flags = ", ".join(here["flags"]) or "none for bfloat16"
        versions = ", ".join(f"{name} {number}" for name, number in here["versions"].items())
        device = (
            f"{here['device']}, {here['cpu']}, {here['cores']} cores, {here['threads']} threads"
        )
        lines.append(f"Measured on: {device}; instructions: {flags}; {versions}.")
    return "\n\n".join(lines)


def others(results: Mapping[str, Result]) -> str:
    """How much of the processor other processes had meanwhile, where that is known."""
    known = {
        name: result["others"]
        for name, result in results.items()
        if result.get("others") is not None
    }
    parts = ", ".join(f"{name} {part:.0%}" for name, part in known.items())
    return f"Of all cores other processes had meanwhile: {parts}." if parts else ""


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "results"
    files = {name: folder / f"{name}.json" for name in FILES}
    results = {
        name: json.loads(file.read_text(encoding="utf8"))
        for name, file in files.items()
        if file.exists()
    }
    note = "Ratios are of medians; in brackets the lowest and the highest of a round."
    parts = [
        note,
        targets(results),
        figures(results),
        steps(results),
        searches(results),
        grown(results),
        machines(results),
        others(results),
    ]
    report = "\n\n".join(filter(None, parts)) + "\n"
    (folder / "table.md").write_text(report, encoding="utf8")
    print(report)


if __name__ == "__main__":
    main()
