"""Fit every meta-embedding of an ensemble, and write the tables of Poerner et al. 2020.

    python benchmarks/papers/meta_embeddings.py training/ensemble --corpus sentences.tsv.gz --column
        2 --data data --output metrics/meta

table1.md: hyper-parameters, and whether members are brought to length 1, by Pearson and Spearman on
STS benchmark dev. table2.md: members, members projected up to the methods' width (mean of 10 seeds)
and methods, with the hyper-parameters that did best in table 1; a year by the unweighted mean of
its sub-sets; the mean over the tasks, without that of table 1; and how much better than the best
member a method is by that mean, with a 95 % interval. table3.md: each method without one of the
members. table4.md: each sub-set. scores.json holds everything, with the seconds of each fit.

The members' vectors are made once and kept in the output folder, in `vectors`. What each setting
scores is written to `runs` at once, also that it cannot be fitted, and why: a run that was stopped
goes on from there. Other members, data, sentences or versions are other runs.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from itertools import compress, product
from pathlib import Path
from typing import Any

import numpy
import spacy
from meta_scores import RESAMPLES, Combined, Data, Members, Scores, average, difference, resampled
from runs import digest, markdown, read_same, write_json
from spacy.util import import_file

from spacy_sbert.files.checksum import digest_of_parts
from spacy_sbert.files.serialization import versions
from spacy_sbert.meta.autoencoder import LAYERS, LOSSES
from spacy_sbert.meta.component import fit_meta
from spacy_sbert.meta.fit import VECTORS_MANIFEST, ShortSentences, Texts, read_sentences
from spacy_sbert.meta.methods import METHODS, make_estimator

TAUS = (1e-2, 1e-1, 1.0, 1e1, 1e2)
# header, lines, notes
Table = tuple[Sequence[str], list[list[str]], Sequence[str]]

# Methods to which the paper gives the members' vectors as they are
RAW = {"gcca", "ae"}
CORRELATION = "Pearson / Spearman x 100 of cosine."
PAPER = (
    "(paper): the members' vectors are as Poerner et al. 2020 give them to the method, for gcca "
    "and ae as they are."
)
TUNED = "(tuned): the hyper-parameters are those that did best on it; no mean has it."
NONE = "-: no score; scores.json says why."


def sample(path: Path, column: int | None, n: int, seed: int) -> Texts:
    """The sentences of a file, or n of them drawn at random, in their order; as often as it is
    called.
    """
    if not n:
        return lambda: read_sentences(path, column)
    total = sum(1 for _ in read_sentences(path, column))
    chosen = numpy.zeros(total, dtype=bool)
    chosen[numpy.random.default_rng(seed).permutation(total)[:n]] = True
    return lambda: compress(read_sentences(path, column), chosen)


class Ensemble:
    """Members by their vectors of the corpus and of whatever is scored; every method is fitted
    here.

    members (Members), data (Data): what is scored, and on what. views: the members' vectors of the
        corpus, as fit_meta
    gives them. folder (Path): where each run is saved.
    """

    def __init__(self, members: Members, views: list[Any], data: Data, folder: Path):
        self.members = members
        self.views = views
        self.data = data
        self.folder = folder
        self.widths = dict(zip(members.names, (view.shape[1] for view in views), strict=True))
        vectors = digest(Path(views[0].filename).parent / VECTORS_MANIFEST)
        self.made_of = {"vectors": vectors, "data": data.facts(), "versions": versions()}

    def member(self, name: str) -> Scores:
        """What one member scores."""
        source = Combined(self.members, [self.members.names.index(name)])
        return self._saved(name, {"member": name}, lambda: self.data.score(source))

    def projected(self, name: str, width: int) -> Scores:
        """What one member scores that is projected up."""
        source = Combined(self.members, [self.members.names.index(name)])
        settings = {"member": name, "up": width}
        return self._saved(name, settings, lambda: self.data.score_projected(source, width))

    def method(self, settings: Scores, *, without: str | None = None, n: int = 0) -> Scores:
        """What members score, all or all but one, combined by a method that is fitted on all
        sentences, or on n of them
        spread over all; with the seconds and the notes of the fit, or the error, where there can be
        none."""
        chosen = [i for i, name in enumerate(self.members.names) if name != without]
        names = [self.members.names[i] for i in chosen]
        total = len(self.views[0])
        rows: Any = slice(None)
        if n:
            rows = numpy.linspace(0, total - 1, n).astype(int)

        def make() -> Scores:
            start = time.perf_counter()
            try:
                views = [self.views[i][rows] for i in chosen]
                estimator = make_estimator(**settings).fit(views, names)
            except ValueError as error:
                return {"error": str(error)}
            fit = {
                "seconds": round(time.perf_counter() - start, 2),
                "notes": list(estimator.notes("the ensemble")),
            }
            return {**fit, **self.data.score(Combined(self.members, chosen, estimator))}

        return self._saved(
            settings["method"], {**settings, "members": names, "sentences": n or total}, make
        )

    def _saved(self, name: str, settings: Scores, make: Callable[[], Scores]) -> Scores:
        settings = {**settings, "made_of": self.made_of}
        file = self.folder / f"{name}-{digest_of_parts(settings)[:16]}.json"
        if not file.exists():
            try:
                scores = make()
            except (MemoryError, RuntimeError) as error:
                # It may end well another time
                return {"error": f"{type(error).__name__}: {error}"}
            file.parent.mkdir(parents=True, exist_ok=True)
            write_json(file, {"scores": scores, "settings": settings})
        return read_same(file, settings)["scores"]


def grid_of(sizes: Sequence[int], training: Scores) -> list[Scores]:
    """The hyper-parameters of the methods that have some."""
    grid: list[Scores] = [{"method": "svd", "size": size} for size in sizes]
    grid += [
        {"method": "gcca", "size": size, "tau": tau, "normalize": normalize}
        for size, normalize, tau in product(sizes, (True, False), TAUS)
    ]
    return grid + [
        {
            "method": "ae",
            "size": sizes[0],
            "loss": loss,
            "hidden_layers": layers,
            "normalize": normalize,
            **training,
        }
        for normalize, loss, layers in product((True, False), LOSSES, LAYERS)
    ]


def search(ensemble: Ensemble, grid: Sequence[Scores], n: int) -> dict[str, Scores]:
    """Table 1: what each of the hyper-parameters scores on STS benchmark dev; autoencoders on n
    sentences.
    """
    found: dict[str, Scores] = {}
    for settings in grid:
        one = ensemble.method(settings, n=n if settings["method"] == "ae" else 0)
        found[json.dumps(settings)] = {**of_fit(one), "dev": one.get("dev")}
        print(cell(one.get("dev")), settings, one.get("error", ""), flush=True)
    return found


def of_fit(found: Scores) -> Scores:
    """What a run says of the fit."""
    return {key: found[key] for key in ("seconds", "notes", "error") if key in found}


def best_of(found: dict[str, Scores], method: str, normalize: bool) -> Scores | None:
    """The settings that correlate best, by rank, with members brought to length 1 or not; none if
    none has a score.
    """
    best = None
    highest = -math.inf
    for key, one in found.items():
        settings = json.loads(key)
        has_kind = (settings["method"], settings.get("normalize", True)) == (method, normalize)
        spearman = one["dev"]["spearman"] if one["dev"] else None
        if has_kind and spearman is not None and spearman > highest:
            best = settings
            highest = spearman
    return best


def chosen_settings(
    found: dict[str, Scores], epochs: int, methods: Sequence[str]
) -> dict[str, Scores]:
    """The settings of each row of table 2 that is a method, with the hyper-parameters that did
    best.
    """
    settings: dict[str, Scores] = {}
    for method, raw in product(methods, (True, False)):
        best = best_of(found, method, not raw)
        if not raw and not any(json.loads(key)["method"] == method for key in found):
            # It has no hyper-parameters to search
            best = {"method": method}
        if best is None:
            continue
        if method == "ae":
            best["epochs"] = epochs
        shown = method
        if method in RAW:
            shown += ", raw" if raw else ", unit length"
        settings[shown + mark_of(best)] = best
    return settings


def table2(
    ensemble: Ensemble, settings: dict[str, Scores], width: int
) -> tuple[dict[str, Scores], str | None]:
    """Table 2, and the best member by its mean, if there is one."""
    names = ensemble.members.names
    tuned_on = ensemble.data.tuned_on()
    runs = {name: ensemble.member(name) for name in names}
    for name in names:
        if ensemble.widths[name] < width:
            runs[f"{name}, projected up"] = ensemble.projected(name, width)
    runs |= {name: ensemble.method(one) for name, one in settings.items()}
    rows: dict[str, Scores] = {}
    for name, one in runs.items():
        tasks = one.get("tasks", {})
        rows[name] = {**of_fit(one), "tasks": tasks, "mean": average(tasks, tuned_on)}
    means = {name: rows[name]["mean"]["spearman"] for name in names}
    defined = [name for name in names if means[name] is not None]
    if not defined:
        return rows, None
    best = max(defined, key=means.__getitem__)
    theirs = resampled(runs[best]["predictions"], tuned_on)
    for name in settings:
        if "predictions" in runs[name]:
            ours = resampled(runs[name]["predictions"], tuned_on)
            rows[name]["difference"] = difference(ours, theirs)
    return rows, best


def table3(ensemble: Ensemble, settings: dict[str, Scores]) -> dict[str, dict[str, Scores]]:
    """Each method without one of the members; none where that would leave one."""
    names = ensemble.members.names
    found: dict[str, dict[str, Scores]] = {}
    left_outs = ["nobody"]
    if len(names) > 2:
        left_outs += names
    for left_out in left_outs:
        found[left_out] = {}
        for name, one in settings.items():
            run = ensemble.method(one, without=left_out)
            means = average(run.get("tasks", {}), ensemble.data.tuned_on())
            found[left_out][name] = {**of_fit(run), "dev": run.get("dev"), "mean": means}
    return found


def cell(scores: Scores | None) -> str:
    """Pearson / Spearman; "-" where there are none."""
    if scores is None or None in (scores["pearson"], scores["spearman"]):
        return "-"
    return f"{scores['pearson']:.2f} / {scores['spearman']:.2f}"


def mark_of(settings: Scores) -> str:
    """What stands behind a method that gets the members' vectors as in the paper."""
    return " (paper)" if settings.get("normalize", True) != (settings["method"] in RAW) else ""


def write_tables(folder: Path, found: Scores) -> None:
    """Write table1.md to table4.md.

    found: what scores.json holds.
    """
    for number, (header, rows, notes) in enumerate(
        (_grid(found), _methods(found), _left_out(found), _subsets(found)), 1
    ):
        text = markdown(header, rows) + "\n" + "".join(f"{note}\n" for note in (*notes, NONE))
        (folder / f"table{number}.md").write_text(text, encoding="utf8")


def _grid(found: Scores) -> Table:
    rows = [
        [key + mark_of(json.loads(key)), cell(one["dev"]), _seconds(one)]
        for key, one in found["table1"].items()
    ]
    said = f"Autoencoders on {found['grid_sentences']} of {found['sentences']} sentences."
    return ["settings", "STS benchmark dev", "fit, s"], rows, [CORRELATION, PAPER, said]


def _methods(found: Scores) -> Table:
    rows = found["table2"]
    tuned_on = found["tuned_on"]
    tasks = _tasks(rows)
    lines = []
    for name, row in rows.items():
        cells = [cell(row["tasks"].get(task)) for task in tasks]
        lines.append([name, *cells, cell(row["mean"]), _difference(row), _seconds(row)])
    better = (
        "better: by how much the method's mean of Spearman is above that of the best member "
        f"({found['best_member']}), and the 95 % interval of {found['resamples']} paired resamples "
        "of the pairs within each sub-set."
    )
    up = (
        f"projected up: at random to {found['projected_to']} numbers, the mean of 10 seeds; "
        "members that are narrower."
    )
    heads = [f"{task} (tuned)" if task in tuned_on else task for task in tasks]
    return ["", *heads, "mean", "better", "fit, s"], lines, [CORRELATION, PAPER, TUNED, up, better]


def _left_out(found: Scores) -> Table:
    methods = list(found["settings"])
    rows = [
        [left_out, *(cell(each[method][of]) for method in methods for of in ("dev", "mean"))]
        for left_out, each in found["table3"].items()
    ]
    heads = [f"{method}, {of}" for method in methods for of in ("dev (tuned)", "mean")]
    return ["left out", *heads], rows, [CORRELATION, PAPER, f"dev: STS benchmark dev. {TUNED}"]


def _subsets(found: Scores) -> Table:
    rows = found["table2"]
    full: Scores = next((row["tasks"] for row in rows.values() if row["tasks"]), {})
    places = [(task, subset) for task, scores in full.items() for subset in scores["subsets"]]
    lines = []
    for task, subset in places:
        line = [f"{task} {subset}"]
        for row in rows.values():
            scores = row["tasks"].get(task, {"subsets": {}})
            line.append(cell(scores["subsets"].get(subset)))
        lines.append(line)
    return ["sub-set", *rows], lines, [CORRELATION, PAPER]


def _tasks(rows: Scores) -> list[str]:
    return list(dict.fromkeys(task for row in rows.values() for task in row["tasks"]))


def _difference(row: Scores) -> str:
    found = row.get("difference")
    if found is None:
        return "-"
    return "{difference:+.2f} [{low:+.2f}, {high:+.2f}]".format(**found)


def _seconds(row: Scores) -> str:
    if "seconds" not in row:
        return "-"
    return f"{row['seconds']:.1f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The tables of sentence meta-embeddings.")
    parser.add_argument("pipeline", type=Path, help="with an sbert_meta pipe")
    parser.add_argument(
        "--code", type=Path, help="a Python file that registers functions of the pipeline"
    )
    parser.add_argument("--corpus", type=Path, required=True, help="plain sentences")
    parser.add_argument("--column", type=int, help="of the sentences in a table, from 1")
    parser.add_argument(
        "--sentences", type=int, default=0, help="so many of the corpus, drawn at random, 0 for all"
    )
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    parser.add_argument(
        "--grid-sentences", type=int, default=0, help="autoencoders are searched on, 0 for all"
    )
    parser.add_argument(
        "--sizes",
        nargs="*",
        type=int,
        help="of svd and gcca; the first is that of ae, and of members projected up; by default "
        "the widest",
    )
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--epochs", type=int, default=500, help="of autoencoders")
    parser.add_argument(
        "--grid-epochs", type=int, default=0, help="of autoencoders while searched, 0 for --epochs"
    )
    parser.add_argument("--batch-size", type=int, default=10_000, help="of autoencoders")
    parser.add_argument("--dev", type=Path, help="STS benchmark dev, by default that of --data")
    parser.add_argument("--data", type=Path, required=True, help="folder of the STS data sets")
    parser.add_argument(
        "--any-count", action="store_true", help="take data sets that are not whole"
    )
    parser.add_argument("--gpu-id", type=int, default=-1, help="of the members")
    parser.add_argument("--output", type=Path, default=Path("metrics/meta"))
    args = parser.parse_args()
    args.dev = args.dev or next(args.data.rglob("sts-dev.csv"), None)
    if args.dev is None:
        parser.error(f"no sts-dev.csv in {args.data}: give --dev")
    return args


def main() -> None:
    args = arguments()
    if args.code:
        import_file(f"code_{args.code.stem}", args.code)
    if args.gpu_id >= 0:
        spacy.require_gpu(args.gpu_id)
    nlp = spacy.load(args.pipeline)
    pipe: Any = nlp.get_pipe("sbert_meta")
    texts = ShortSentences(nlp, sample(args.corpus, args.column, args.sentences, args.seed))
    vectors = args.output / "vectors"
    views = fit_meta(nlp, "sbert_meta", texts, cache=vectors)
    data = Data(args.data, args.dev, args.any_count)
    ensemble = Ensemble(Members(nlp, pipe, vectors), views, data, args.output / "runs")
    sizes = args.sizes or [max(ensemble.widths.values())]
    training = {"epochs": args.grid_epochs or args.epochs, "batch_size": args.batch_size}
    grid = [one for one in grid_of(sizes, training) if one["method"] in args.methods]
    found = search(ensemble, grid, args.grid_sentences)
    settings = chosen_settings(found, args.epochs, args.methods)
    rows, best = table2(ensemble, settings, sizes[0])
    scores = {
        "sentences": len(views[0]),
        "left_out": texts.n_left_out,
        "grid_sentences": args.grid_sentences or len(views[0]),
        "seed": args.seed,
        "widths": ensemble.widths,
        "projected_to": sizes[0],
        "tuned_on": data.tuned_on(),
        "best_member": best,
        "resamples": RESAMPLES,
        "settings": settings,
        "made_of": ensemble.made_of,
        "table1": found,
        "table2": rows,
        "table3": table3(ensemble, settings),
    }
    (args.output / "scores.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf8")
    write_tables(args.output, scores)


if __name__ == "__main__":
    main()
