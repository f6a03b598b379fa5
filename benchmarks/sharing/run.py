"""What sharing costs: `sbert_transformer` beside the `transformer` of spacy-transformers.

    python benchmarks/sharing/run.py --data DATA --output FOLDER

It needs both (constraints-spacy-transformers.txt), and DATA with sts/STSBenchmark, senteval/TREC
and wikisec. Runs in processes of their own, in turn, each on one thread; seconds are those of the
processor.

joint: ner and textcat_multilabel on one transformer, trained on the same batches, three seeds, for
    "ours" (sbert_transformer) and "stock" (spacy-transformers.TransformerModel.v3 with doc_spans):
    F of ner, macro AUC of the classes, milliseconds of a step (median), peak memory. Data: "sample"
    is assets/entities-*.iob, with the presence of a person as the class; "names" are 800 sentences
    of Wikipedia in lower case, whose names are to be found, and as many questions of TREC with
    their classes.
pipe: nlp.pipe of ner and sbert over STSb's dev sentences and their concatenations of 1 to 8, texts
    a second.
"""

import argparse
import csv
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SEEDS = (1, 2, 3)
KINDS = ("ours", "stock")
ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
BATCH = 16


def add_transformer(nlp: Any, kind: str, precision: str = "float32") -> str:
    """Add a shared transformer, and return the architecture of its listeners."""
    from spacy_sbert.models.resolve import resolve

    if kind == "ours":
        nlp.add_pipe(
            "sbert_transformer",
            name="transformer",
            config={"model": {"name": ENCODER, "precision": precision}},
        )
        return "spacy-sbert.TransformerListener.v1"
    spans = {"@span_getters": "spacy-transformers.doc_spans.v1"}
    model = {
        "@architectures": "spacy-transformers.TransformerModel.v3",
        "name": str(resolve(ENCODER)),
        "get_spans": spans,
    }
    nlp.add_pipe("transformer", config={"model": model})
    return "spacy-transformers.TransformerListener.v1"


def add_ner(nlp: Any, architecture: str) -> None:
    tok2vec = {
        "@architectures": architecture,
        "pooling": {"@layers": "reduce_mean.v1"},
        "grad_factor": 1.0,
    }
    model = {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "ner",
        "hidden_width": 64,
    }
    model |= {
        "extra_state_tokens": False,
        "maxout_pieces": 2,
        "use_upper": False,
        "tok2vec": tok2vec,
    }
    nlp.add_pipe("ner", config={"model": model})


def add_textcat(nlp: Any, architecture: str) -> None:
    tok2vec = {
        "@architectures": architecture,
        "pooling": {"@layers": "reduce_mean.v1"},
        "grad_factor": 1.0,
    }
    reduce = {f"use_reduce_{how}": how == "mean" for how in ("first", "last", "max", "mean")}
    model = {
        "@architectures": "spacy.TextCatReduce.v1",
        "exclusive_classes": False,
        "tok2vec": tok2vec,
        **reduce,
    }
    # Which leaves out examples without classes
    nlp.add_pipe("textcat_multilabel", config={"model": model})


# Data


def of_sample(nlp: Any, part: str) -> Iterator[Any]:
    """Sentences with entities; the class says whether there is a person among them."""
    from spacy.training import Example, iob_utils
    from spacy.training.converters import iob_to_docs

    for doc in iob_to_docs(
        (ROOT / "assets" / f"entities-{part}.iob").read_text(encoding="utf8"), no_print=True
    ):
        for sentence in doc.sents:
            text = sentence.as_doc()
            has_person = float(any("PER" in entity.label_ for entity in text.ents))
            gold = {
                "entities": iob_utils.doc_to_biluo_tags(text),
                "cats": {"person": has_person, "none": 1 - has_person},
            }
            predicted = nlp.make_doc(text.text)
            words = [token.text for token in text]
            yield Example.from_dict(
                predicted, {**gold, "words": words, "spaces": [bool(t.whitespace_) for t in text]}
            )


def of_names(nlp: Any, data: Path, part: str) -> Iterator[Any]:
    """Lowercased sentences of Wikipedia, whose names had capitals, and questions of TREC with
    classes, in turn.
    """
    from spacy.tokens import Doc, Span
    from spacy.training import Example

    with (data / "wikisec" / "train.csv").open(encoding="utf8") as file:
        sentences = list(dict.fromkeys(row["Sentence1"] for row in csv.DictReader(file)))
    chosen = sentences[:800] if part == "train" else sentences[800:1100]
    name = "train_5500.label" if part == "train" else "TREC_10.label"
    questions = (data / "senteval" / "TREC" / name).read_text(encoding="latin1").splitlines()
    labels = sorted({line.partition(":")[0] for line in questions})
    for sentence, line in zip(chosen, questions, strict=False):
        tokens = nlp.make_doc(sentence)
        words = [token.lower_ for token in tokens]
        reference = Doc(nlp.vocab, words=words)
        is_name = [i > 0 and token.is_title and token.is_alpha for i, token in enumerate(tokens)]
        starts = [i for i, own in enumerate(is_name) if own and not is_name[i - 1]]
        ends = [
            next((j for j in range(i, len(words)) if not is_name[j]), len(words)) for i in starts
        ]
        reference.ents = [
            Span(reference, i, j, label="NAME") for i, j in zip(starts, ends, strict=True)
        ]
        yield Example(Doc(nlp.vocab, words=words), reference)
        label, _, text = line.partition(":")
        cats = {one: float(one == label) for one in labels}
        yield Example.from_dict(nlp.make_doc(text.partition(" ")[2]), {"cats": cats})


# Runs


def joint(data: Path, kind: str, of: str, seed: int) -> dict[str, float]:
    """Train ner and textcat on one transformer."""
    import spacy
    from spacy.training import Example
    from thinc.api import Adam, fix_random_seed, warmup_linear

    fix_random_seed(seed)
    nlp = spacy.blank("en")
    architecture = add_transformer(nlp, kind)
    add_ner(nlp, architecture)
    add_textcat(nlp, architecture)
    read = of_sample if of == "sample" else lambda nlp, part: of_names(nlp, data, part)
    train, dev = list(read(nlp, "train")), list(read(nlp, "dev"))
    nlp.initialize(lambda: train)
    epochs = 12 if of == "sample" else 1
    n_steps = epochs * -(-len(train) // BATCH)
    optimizer = Adam(
        warmup_linear(5e-5, n_steps // 10, n_steps), L2=0.0, grad_clip=1.0, use_averages=False
    )
    shuffle = random.Random(seed).shuffle
    seconds = []
    for _ in range(epochs):
        shuffle(train)
        for start in range(0, len(train), BATCH):
            begin = time.process_time()
            batch = [Example(one.x.copy(), one.y) for one in train[start : start + BATCH]]
            nlp.update(batch, sgd=False, drop=0.1)
            for _, pipe in nlp.pipeline:
                pipe.finish_update(optimizer)
            optimizer.step_schedules()
            seconds.append(time.process_time() - begin)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    scores = nlp.evaluate(dev)
    step = 1000 * statistics.median(seconds)
    return {
        "ents_f": scores["ents_f"],
        "cats_score": scores["cats_score"],
        "step_ms": step,
        "peak_mb": peak,
    }


def pipe(data: Path, kind: str, precision: str, seed: int) -> dict[str, float]:
    """Encode texts of mixed lengths with ner and sbert."""
    import spacy

    table = data / "sts" / "STSBenchmark" / "sts-dev.csv"
    with table.open(encoding="utf8") as file:
        sentences = [
            row[5].strip() for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
    draw = random.Random(seed)
    texts = [" ".join(draw.sample(sentences, draw.choice((1, 1, 1, 2, 4, 8)))) for _ in range(400)]
    nlp = spacy.blank("en")
    architecture = add_transformer(nlp, kind, precision)
    add_ner(nlp, architecture)
    nlp.add_pipe(
        "sbert", config={"model": {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}}
    )
    nlp.get_pipe("ner").add_label("NP")
    nlp.initialize()
    for _ in nlp.pipe(texts[:128]):
        pass
    seconds = []
    for _ in range(2):
        begin = time.process_time()
        for doc in nlp.pipe(texts):
            doc.vector  # noqa: B018 (read, as users do)
        seconds.append(time.process_time() - begin)
    return {"texts_per_second": len(texts) / min(seconds)}


def in_a_process(output: Path, name: str, *options: str) -> dict[str, float]:
    """Return the result of a run, which is kept as JSON."""
    file = output / f"{name}.json"
    if not file.exists():
        done = subprocess.run(
            [sys.executable, __file__, *options],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        file.write_text(done.stdout.splitlines()[-1] + "\n", encoding="utf8")
    return json.loads(file.read_text(encoding="utf8"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path)
    parser.add_argument(
        "--run", nargs=4, metavar=("WHAT", "KIND", "OF", "SEED"), help="one run, in this process"
    )
    args = parser.parse_args()
    if args.run:
        warnings.simplefilter("ignore")
        what, kind, of, seed = args.run
        result = {"joint": joint, "pipe": pipe}[what](args.data, kind, of, int(seed))
        print(json.dumps(result))
        return
    args.output.mkdir(parents=True, exist_ok=True)
    runs = [
        ("joint", kind, of, seed) for of in ("names", "sample") for seed in SEEDS for kind in KINDS
    ]
    pipes = [("ours", "float32"), ("stock", "float32"), ("ours", "bfloat16")]
    runs += [("pipe", kind, precision, seed) for seed in SEEDS for kind, precision in pipes]
    for what, kind, of, seed in runs:
        options = ["--data", str(args.data), "--run", what, kind, of, str(seed)]
        result = in_a_process(args.output, f"{what}-{kind}-{of.replace(' ', '-')}-{seed}", *options)
        print(what, kind, of, seed, json.dumps(result), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
