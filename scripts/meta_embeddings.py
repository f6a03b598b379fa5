"""Fit every meta-embedding of an ensemble, and write the tables of Poerner et al. 2020.

    python scripts/meta_embeddings.py training/ensemble --corpus sentences.tsv.gz --column 2 --data data
        --output metrics/meta

table1.md: hyper-parameters, by Pearson and Spearman on STS benchmark dev. table2.md: members, members projected up to
the width of their concatenation (mean of 10 seeds) and methods, by the unweighted mean over the sub-sets of each year.
table3.md: each method without one of the members. table4.md: each sub-set. GCCA and autoencoder have the
hyper-parameters that did best in table 1, also with and without normalised members. scores.json holds everything, and
what it was made of. The members' vectors are made once and kept in the output folder.
"""

import argparse
import json
from collections.abc import Sequence
from functools import partial
from itertools import compress, product
from pathlib import Path
from typing import Any

import numpy
import spacy
from spacy.language import Language
from tables import markdown

from spacy_sbert.evaluation import Settings, evaluate_suites
from spacy_sbert.files.environment import versions
from spacy_sbert.meta import METHODS, MetaEmbedding, make_estimator
from spacy_sbert.meta.autoencoder import LAYERS
from spacy_sbert.meta.component import SentenceMeta
from spacy_sbert.meta.corpus import ShortSentences, Texts, read_sentences
from spacy_sbert.meta.fitting import fit_meta
from spacy_sbert.meta.reconstruction import LOSSES
from spacy_sbert.readers.sts import read_sts
from spacy_sbert.similarity import cosine
from spacy_sbert.similarity.correlation import pearson, spearman

TAUS = (1e-2, 1e-1, 1.0, 1e1, 1e2)
Scores = dict[str, Any]


def sample(path: Path, column: int | None, n: int, seed: int) -> Texts:
    """The sentences of a file, or n of them drawn at random, in their order; as often as it is called."""
    if not n:
        return lambda: read_sentences(path, column)
    total = sum(1 for _ in read_sentences(path, column))
    chosen = numpy.zeros(total, dtype=bool)
    chosen[numpy.random.default_rng(seed).permutation(total)[:n]] = True
    return lambda: compress(read_sentences(path, column), chosen)


class Members:
    """The members' vectors of texts, each text encoded once."""

    def __init__(self, nlp: Language, pipe: SentenceMeta):
        self.nlp, self.pipe = nlp, pipe
        self.names = [member.name for member in pipe.members]
        self.place: dict[str, int] = {}
        self.rows: list[numpy.ndarray] = []  # of each member, (texts so far, d_j)

    def __call__(self, texts: Sequence[str], chosen: Sequence[int]) -> list[numpy.ndarray]:
        """The vectors of some members, float32 (n, d_j) each."""
        new = sorted({text for text in texts if text not in self.place}, key=len)
        if new:
            before = self.nlp.pipe_names[: self.nlp.pipe_names.index(self.pipe.name)]
            with self.nlp.select_pipes(enable=before):
                found = self.pipe.member_vectors(list(self.nlp.pipe(new, batch_size=1000)))
            self.rows = [numpy.vstack(pair) for pair in zip(self.rows, found, strict=True)] if self.rows else found
            start = len(self.place)
            self.place.update((text, start + i) for i, text in enumerate(new))
        places = [self.place[text] for text in texts]
        return [self.rows[i][places] for i in chosen]


class Combined:
    """A source of vectors for evaluation: one member, or several of them combined."""

    learns, nlp, digest = False, None, ""

    def __init__(self, members: Members, chosen: Sequence[int], estimator: MetaEmbedding | None = None):
        self.members, self.chosen, self.estimator = members, list(chosen), estimator
        self.name = "+".join(members.names[i] for i in chosen)

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        views = self.members(texts, self.chosen)
        return (views[0] if self.estimator is None else self.estimator.transform(views)).astype("float32")


class Ensemble:
    """Members by their vectors of the corpus and of whatever is scored; every method is fitted here."""

    def __init__(self, members: Members, views: list[numpy.ndarray], data: Path, any_count: bool):
        self.members, self.views = members, views
        self.score = partial(on_sts, data=data, any_count=any_count)
        self.everyone = list(range(len(members.names)))

    def combined(self, chosen: list[int], *, n: int = 0, **settings: Any) -> Combined:
        """Some members, combined by a method that is fitted on all sentences, or on n of them spread over all."""
        rows = numpy.linspace(0, len(self.views[0]) - 1, n).astype(int) if n else slice(None)
        views, names = [self.views[i][rows] for i in chosen], [self.members.names[i] for i in chosen]
        return Combined(self.members, chosen, make_estimator(**settings).fit(views, names))

    def sources(self) -> dict[str, dict[str, Scores]]:
        """Each member, and projected up to the width of all together."""
        up = f"up-{sum(view.shape[1] for view in self.views)}"
        found = {name: self.score(Combined(self.members, [i]), sizes=("own", up)) for i, name in self.numbered}
        own = {name: scores["own"] for name, scores in found.items()}
        return {**own, **{f"{name}, projected up": scores[up] for name, scores in found.items()}}

    @property
    def numbered(self) -> list[tuple[int, str]]:
        return list(enumerate(self.members.names))

    def methods(self, settings: dict[str, Scores]) -> dict[str, dict[str, Scores]]:
        """Each method on all members."""
        return {name: self.score(self.combined(self.everyone, **one))["own"] for name, one in settings.items()}

    def without(self, settings: dict[str, Scores]) -> dict[str, Scores]:
        """Each method without one of the members, on average; none where that would leave one."""
        found: dict[str, Scores] = {}
        for out, name in self.numbered if len(self.everyone) > 2 else []:
            left = [i for i in self.everyone if i != out]
            scores = {key: self.score(self.combined(left, **one))["own"] for key, one in settings.items()}
            found[name] = {key: average(one) for key, one in scores.items()}
        return found


def on_dev(source: Combined, file: Path) -> Scores:
    """Correlations x 100 on the pairs of a file in the layout of the STS benchmark."""
    first, second, gold = zip(*read_sts(file), strict=True)
    cosines = cosine(source.encode(first), source.encode(second))
    return {"pearson": 100 * (pearson(cosines, gold) or 0), "spearman": 100 * (spearman(cosines, gold) or 0)}


def on_sts(source: Combined, data: Path, any_count: bool, sizes: tuple[str, ...] = ("own",)) -> dict[str, Scores]:
    """Correlations x 100 by task and sub-set: all of a task (a year's mean over sub-sets), for each size."""
    found = evaluate_suites(source, data, ["sts"], settings=Settings(bootstrap=0, sizes=sizes, any_count=any_count))
    if found["failed"] or not found["tasks"]:
        raise SystemExit(f"Not scored: {found['failed'] or 'no STS data set in the folder'}")
    scores: dict[str, Scores] = {size: {} for size in sizes}
    for task, result in found["tasks"].items():
        for variant in result["variants"]:
            for name in ("pearson", "spearman"):
                one = variant["scores"]["cosine"][name]
                every = scores[variant["size"]].setdefault(task, {"subsets": {}})
                every[name] = 100 * one.get("mean", one["pooled"])
                for subset, value in one.get("subsets", {}).items():
                    every["subsets"].setdefault(subset, {})[name] = 100 * value
    return scores


def cell(scores: Scores) -> str:
    return f"{scores['pearson']:.2f} / {scores['spearman']:.2f}"


def average(tasks: Scores) -> Scores:
    """The unweighted mean over tasks."""
    return {name: float(numpy.mean([one[name] for one in tasks.values()])) for name in ("pearson", "spearman")}


def search(ensemble: Ensemble, dev: Path, sizes: Sequence[int], n: int, training: Scores) -> dict[str, Scores]:
    """Table 1: the hyper-parameters of the methods that have some, and what they score; autoencoders on n sentences."""
    grid: list[Scores] = [{"method": "svd", "size": size} for size in sizes]
    grid += [
        {"method": "gcca", "size": size, "tau": tau, "normalize": normalize}
        for size, normalize, tau in product(sizes, (True, False), TAUS)
    ]
    grid += [
        {"method": "ae", "size": sizes[0], "loss": loss, "hidden_layers": layers, **training}
        for loss, layers in product(LOSSES, LAYERS)
    ]
    found: dict[str, Scores] = {}

    def score(settings: Scores) -> None:
        combined = ensemble.combined(ensemble.everyone, n=n if settings["method"] == "ae" else 0, **settings)
        found[json.dumps(settings)] = on_dev(combined, dev)
        print(cell(found[json.dumps(settings)]), settings, flush=True)

    for settings in grid:
        score(settings)
    score({**best_of(found, "ae"), "normalize": False})
    return found


def best_of(found: dict[str, Scores], method: str) -> Scores:
    """The settings with normalised members that correlate best, by rank."""
    keys = [key for key in found if json.loads(key)["method"] == method and json.loads(key).get("normalize", True)]
    return json.loads(max(keys, key=lambda key: found[key]["spearman"]))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The tables of sentence meta-embeddings.")
    parser.add_argument("pipeline", type=Path, help="with an sbert_meta pipe")
    parser.add_argument("--corpus", type=Path, required=True, help="plain sentences")
    parser.add_argument("--column", type=int, help="of the sentences in a table, from 1")
    parser.add_argument("--sentences", type=int, default=0, help="so many of the corpus, drawn at random, 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    parser.add_argument("--grid-sentences", type=int, default=0, help="autoencoders are searched on, 0 for all")
    parser.add_argument("--sizes", nargs="*", type=int, help="of svd and gcca; the first of ae; by default the widest")
    parser.add_argument("--epochs", type=int, default=500, help="of autoencoders")
    parser.add_argument("--grid-epochs", type=int, default=0, help="of autoencoders while searched, 0 for --epochs")
    parser.add_argument("--batch-size", type=int, default=10_000, help="of autoencoders")
    parser.add_argument("--dev", type=Path, help="STS benchmark dev, by default that of --data")
    parser.add_argument("--data", type=Path, required=True, help="folder of the STS data sets")
    parser.add_argument("--any-count", action="store_true", help="take data sets that are not whole")
    parser.add_argument("--output", type=Path, default=Path("metrics/meta"))
    return parser.parse_args()


def main() -> None:
    args = arguments()
    args.output.mkdir(parents=True, exist_ok=True)
    nlp = spacy.load(args.pipeline)
    pipe: Any = nlp.get_pipe("sbert_meta")
    texts = ShortSentences(nlp, sample(args.corpus, args.column, args.sentences, args.seed))
    views = fit_meta(nlp, "sbert_meta", texts, cache=args.output / "vectors")
    ensemble = Ensemble(Members(nlp, pipe), views, args.data, args.any_count)
    widths = {name: view.shape[1] for (_, name), view in zip(ensemble.numbered, views, strict=True)}
    training = {"epochs": args.grid_epochs or args.epochs, "batch_size": args.batch_size}
    dev, sizes = args.dev or next(args.data.rglob("sts-dev.csv")), args.sizes or [max(widths.values())]
    grid = search(ensemble, dev, sizes, args.grid_sentences, training)
    best = {method: best_of(grid, method) for method in ("svd", "gcca", "ae")}
    settings: dict[str, Scores] = {method: {"method": method, **best.get(method, {})} for method in METHODS}
    settings["ae"]["epochs"] = args.epochs
    found = {
        "sentences": len(views[0]),
        "left_out": texts.n_left_out,
        "grid_sentences": args.grid_sentences or len(views[0]),
        "seed": args.seed,
        "widths": widths,
        "settings": settings,
        "versions": versions(),
        "table1": grid,
        "table2": {**ensemble.sources(), **ensemble.methods(settings)},
        "table3": ensemble.without(settings),
    }
    (args.output / "scores.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
    write_tables(args.output, found)


def write_tables(folder: Path, found: Scores) -> None:
    """The four tables, Pearson / Spearman x 100."""
    rows = found["table2"]
    tasks = list(next(iter(rows.values())))
    table1 = [[key, cell(scores)] for key, scores in found["table1"].items()]
    table2 = [[name, *(cell(row[task]) for task in tasks), cell(average(row))] for name, row in rows.items()]
    methods = list(METHODS)
    table3 = [["nobody", *(cell(average(rows[method])) for method in methods)]]
    table3 += [[name, *(cell(each[method]) for method in methods)] for name, each in found["table3"].items()]
    subsets = [(task, subset) for task in tasks for subset in next(iter(rows.values()))[task]["subsets"]]
    table4 = [
        [f"{task} {subset}", *(cell(row[task]["subsets"][subset]) for row in rows.values())] for task, subset in subsets
    ]
    for name, header, lines in (
        ("table1", ["settings", "STS benchmark dev"], table1),
        ("table2", ["", *tasks, "mean"], table2),
        ("table3", ["left out", *methods], table3),
        ("table4", ["sub-set", *rows], table4),
    ):
        (folder / f"{name}.md").write_text(markdown(header, lines), encoding="utf8")


if __name__ == "__main__":
    main()
