"""Labels of pairs by the head of a pipeline."""

import json

import pytest
from spacy.training import Example

from spacy_sbert.evaluation import PipelineSource, Settings, evaluate_suites
from spacy_sbert.readers.examples import example_doc

FEW = Settings(any_count=True, bootstrap=20)


def evaluate(root, nlp):
    return evaluate_suites(PipelineSource(nlp), root, ["nli"], settings=FEW, progress_bar=False)


def test_nli_needs_a_head_and_asks_it(make_nlp, tmp_path):
    rows = [
        ("A man is eating.", "He can go.", "neutral"),
        ("The dog ran.", "The cat sat.", "contradiction"),
    ]
    keys = ("sentence1", "sentence2", "gold_label")
    lines = [json.dumps(dict(zip(keys, row, strict=True))) for row in (*rows, ("a", "b", "-"))]
    (tmp_path / "snli_dev.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="no trained classification head"):
        evaluate(tmp_path, make_nlp())

    nlp = make_nlp(loss={"@layers": "spacy-sbert.SoftmaxLoss.v1"})
    references = [example_doc(nlp, row[:2], label=row[2]) for row in rows]
    optimizer = nlp.initialize(lambda: [Example(doc.copy(), doc) for doc in references])
    optimizer.learn_rate = 0.01
    for _ in range(20):
        nlp.update([Example(doc.copy(), doc) for doc in references], sgd=optimizer)
    found = evaluate(tmp_path, nlp)["tasks"]["SNLI-dev"]
    assert found["variants"][0]["scores"] == {"accuracy": 1.0}
    assert found["counts"] == {"all": 2}
    assert found["intervals"] == {"accuracy": [1.0, 1.0]}
