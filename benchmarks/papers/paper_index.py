"""The index of docs/papers.md: what is measured here of each table of the papers, and what is not.

page.py writes it between `<!-- index -->` and `<!-- end -->`.
"""

from collections import Counter
from dataclasses import dataclass

from runs import markdown

WHOLE = "whole"
SUBSTITUTES = "with substitutes"
MISSING = "missing"
STATES = (WHOLE, SUBSTITUTES, MISSING)

GPU = "What a GPU alone can show"

SBERT = "Sentence-BERT (Reimers and Gurevych 2019)"
META = "Sentence meta-embeddings (Poerner, Waltinger and Schütze 2020)"
PITFALLS = "Pitfalls (Eger, Rückle and Gurevych 2019)"
HEADER = ("of the paper", "state", "results", "command", "what differs, or why not")
NO_DATA = "data not available to us; scored once they are in the folder"


@dataclass(frozen=True)
class Entry:
    """A row of the index.

    paper, what (str): the heading of the paper, and its table, or what it shows.
    state (str): one of STATES.
    why (str): what differs from the paper, or why it is missing.
    command (str): a script in benchmarks/papers with its arguments, or a whole command.
    section (str): the heading of the page that has it, or has the command of what is missing; empty
        if there is none.
    results (tuple): files below benchmarks/papers/results, or from the root of the repository if
        they begin with "benchmarks/".
    """

    paper: str
    what: str
    state: str
    why: str
    command: str
    section: str = ""
    results: tuple[str, ...] = ()


ENTRIES = (
    Entry(
        SBERT,
        "Table 1, without training on STS",
        SUBSTITUTES,
        "STS12, STS14, STS15; STSb dev and SICK-R trial in place of test",
        "suites.py sts sick",
        "Table 1: zero-shot",
        ("sts/table.md",),
    ),
    Entry(
        SBERT,
        "Table 1, STS13 and STS16",
        MISSING,
        NO_DATA,
        "suites.py sts sick",
        "Table 1: zero-shot",
    ),
    Entry(
        SBERT,
        "Section 4, Manhattan and Euclidean distance",
        SUBSTITUTES,
        "the sets of Table 1 above",
        "suites.py sts sick",
        "Manhattan and Euclidean distance",
        ("sts/scores.json",),
    ),
    Entry(
        SBERT,
        "Table 1, trained on NLI",
        SUBSTITUTES,
        "10,000 pairs in place of 1,000,000",
        "supervised_sts.py",
        "Tables 1 and 2: trained",
        ("supervised-minilm/table.md", "supervised-mpnet/table.md"),
    ),
    Entry(
        SBERT,
        "Table 2, trained on STSb",
        SUBSTITUTES,
        "STSb dev in place of test; one epoch; cross-encoders from MiniLM only, five seeds",
        "supervised_sts.py",
        "Tables 1 and 2: trained",
        ("supervised-minilm/table.md", "supervised-mpnet/table.md"),
    ),
    Entry(
        SBERT,
        "Tables 1, 2 and 5, BERT and RoBERTa on all of NLI",
        MISSING,
        "neither weights nor all pairs available to us; takes a GPU",
        "python -m spacy project run nli benchmarks/papers",
        GPU,
    ),
    Entry(
        SBERT,
        "Table 3, argument similarity",
        SUBSTITUTES,
        "the UKP aspect corpus in place of AFS; trained with one seed, four folds of topics",
        "argument_similarity.py",
        "Table 3: argument similarity",
        ("arguments/table.md", "arguments-trained/table.md"),
    ),
    Entry(
        SBERT,
        "Table 3, AFS",
        MISSING,
        "data not available to us",
        "argument_similarity.py --layout afs --data FOLDER",
    ),
    Entry(
        SBERT,
        "Table 4, Wikipedia sections, not trained",
        SUBSTITUTES,
        "1201 triplets, made as Dor et al. 2018 describe, in place of 222,957",
        "suites.py triplets",
        "Table 4: Wikipedia sections",
        ("wikisec/table.md",),
    ),
    Entry(
        SBERT,
        "Table 4, Wikipedia sections, trained",
        SUBSTITUTES,
        "3000 triplets in place of 1.8 million, from MiniLM; scored on the same 1201",
        "python benchmarks/objectives/ours.py triplet SEED",
        "Table 4: Wikipedia sections",
        ("benchmarks/objectives/results/objectives.json",),
    ),
    Entry(
        SBERT,
        "Table 4, all of the triplets",
        MISSING,
        "data not available to us; takes a GPU",
        "python -m spacy project run wikisec benchmarks/papers",
        GPU,
    ),
    Entry(
        SBERT,
        "Table 5, MR, CR, SST, TREC",
        SUBSTITUTES,
        "only `bilstm` was trained on NLI",
        "pitfalls.py",
        "Table 5: transfer tasks",
        ("pitfalls/classifiers.md",),
    ),
    Entry(SBERT, "Table 5, SUBJ, MPQA, MRPC", MISSING, NO_DATA, "suites.py transfer"),
    Entry(
        SBERT,
        "Table 6, pooling, trained on STSb",
        SUBSTITUTES,
        "one epoch; five seeds",
        "ablation.py --config configs/sts.cfg",
        "Table 6: pooling and concatenation",
        ("ablation-sts/table.md",),
    ),
    Entry(
        SBERT,
        "Table 6, pooling and concatenation, trained on NLI",
        SUBSTITUTES,
        "6400 pairs in place of 1,000,000; also a BiLSTM that begins from nothing",
        "ablation.py",
        "Table 6: pooling and concatenation",
        ("ablation-nli/table.md", "ablation-scratch/table.md"),
    ),
    Entry(
        SBERT,
        "Table 7, sentences a second on a CPU",
        SUBSTITUTES,
        "another processor",
        "suites.py speed",
        "Table 7: sentences a second",
        ("speed/table.md",),
    ),
    Entry(SBERT, "Table 7, on a GPU", MISSING, "takes a GPU", "make gpu", GPU),
    Entry(
        SBERT,
        "Sections 1 and 8, pairs and clusters of 10,000 sentences",
        SUBSTITUTES,
        "two cores in place of a GPU; MiniLM; the cross-encoder's hours from 1000 pairs",
        "pair_search.py",
        "Pair search and clustering",
        ("pair-search/table.md",),
    ),
    Entry(
        SBERT,
        "Section 2, poly-encoder (Humeau et al. 2020)",
        SUBSTITUTES,
        "duplicate questions in place of dialogue; 1600 and 2000 pairs, from MiniLM; m = 16",
        "poly_encoder/compare.py",
        "Poly-encoder",
        ("poly-encoder/table.md", "poly-encoder-labels/table.md"),
    ),
    Entry(
        META,
        "Table 1, hyper-parameters",
        SUBSTITUTES,
        "other sentences to fit on; autoencoders: 10,000 of them, 5 epochs in place of 500",
        "meta_embeddings.py",
        "Table 1: hyper-parameters",
        ("meta/table1.md",),
    ),
    Entry(
        META,
        "Table 2, members and methods",
        SUBSTITUTES,
        "four other members; STS12, STS14, STS15; STSb dev in place of test",
        "meta_embeddings.py",
        "Table 2: members and methods",
        ("meta/table2.md",),
    ),
    Entry(
        META,
        "Table 3, without one of the members",
        SUBSTITUTES,
        "four other members",
        "meta_embeddings.py",
        "Table 3: without one of the members",
        ("meta/table3.md",),
    ),
    Entry(
        META,
        "Table 4, every sub-set",
        SUBSTITUTES,
        "the 16 sub-sets of STS12, STS14 and STS15",
        "meta_embeddings.py",
        "Table 4: every sub-set",
        ("meta/table4.md",),
    ),
    Entry(
        META,
        "Tables 2 and 4, STS13, STS16, STSb test",
        MISSING,
        NO_DATA,
        "meta_embeddings.py",
        "Table 4: every sub-set",
    ),
    Entry(
        PITFALLS,
        "The size of vectors",
        SUBSTITUTES,
        "four transfer tasks; also the cosine on STS",
        "pitfalls.py",
        "The size of vectors",
        ("pitfalls/sizes.md",),
    ),
    Entry(
        PITFALLS,
        "Table 2, Pearson and Spearman: range and deviation over encoders",
        SUBSTITUTES,
        "STS12, STS14, STS15, STSb dev",
        "pitfalls.py",
        "Pearson and Spearman",
        ("pitfalls/pairs.json",),
    ),
    Entry(
        PITFALLS,
        "Normalisation, cosine and classifiers",
        SUBSTITUTES,
        "the same sets, and four transfer tasks",
        "pitfalls.py",
        "Normalisation",
        ("pitfalls/normalizations.md",),
    ),
    Entry(
        PITFALLS,
        "Figure 2, normalisation under a learned similarity",
        SUBSTITUTES,
        "STSb dev, SICK-R trial; eleven encoders",
        "learned_normalization.py",
        "Learned similarity and normalisation",
        ("pitfalls/learned-normalized.md",),
    ),
    Entry(
        PITFALLS,
        "Cosine and learned similarity",
        SUBSTITUTES,
        "STSb dev, SICK-R trial, UKP aspect corpus",
        "pitfalls.py",
        "Learned similarity",
        ("pitfalls/learned.md",),
    ),
    Entry(
        PITFALLS,
        "Logistic regression and the MLP",
        SUBSTITUTES,
        "four transfer and four probing tasks",
        "pitfalls.py",
        "Logistic regression and the MLP",
        ("pitfalls/classifiers.md",),
    ),
    Entry(
        PITFALLS,
        "Transfer and probing tasks: correlation over encoders",
        SUBSTITUTES,
        "four of each; thirteen encoders, with intervals",
        "pitfalls.py",
        "Transfer and probing",
        ("pitfalls/probing.md",),
    ),
    Entry(
        PITFALLS,
        "The other transfer and probing tasks",
        MISSING,
        NO_DATA,
        "suites.py transfer probing",
    ),
)


def index() -> str:
    """The counts of the states, and a table for each paper."""
    counts = Counter(entry.state for entry in ENTRIES)
    counted = ", ".join(f"{counts[state]} {state}" for state in STATES)
    parts = [f"{len(ENTRIES)} rows: {counted}.\n"]
    for paper in dict.fromkeys(entry.paper for entry in ENTRIES):
        rows = [row(entry) for entry in ENTRIES if entry.paper == paper]
        parts.append(f"**{paper}**\n\n{markdown(HEADER, rows)}")
    return "\n".join(parts)


def row(entry: Entry) -> list[str]:
    """The cells of a row, the first with a link to the section."""
    what = entry.what
    if entry.section:
        what = f"[{entry.what}](#{anchor(entry.section)})"
    results = ", ".join(f"`{name}`" for name in entry.results)
    return [what, entry.state, results or "-", f"`{entry.command}`", entry.why]


def anchor(heading: str) -> str:
    """The link to a heading, as GitHub and MkDocs make it."""
    letters = [letter for letter in heading.lower() if letter.isalnum() or letter in " -_"]
    return "".join(letters).replace(" ", "-")
