"""The encoders of the papers' page: what is called random has kept no weights of a training."""

import spacy

from spacy_sbert.similarity import cosine


def test_random_weights(load_script, tmp_path):
    """They are drawn with the standard deviation of BERT's config, and saved with the pipeline."""
    encoders = load_script("encoders")
    for name in ("minilm", "random"):
        encoders.ENCODERS[name](tmp_path / name)
    vectors = []
    for name in ("minilm", "random"):
        nlp = spacy.load(tmp_path / name)
        vectors.append(nlp("A man is eating.").vector)
    assert abs(cosine(vectors[0][None], vectors[1][None])[0]) < 0.3
    pipe = nlp.get_pipe("sbert")
    (shim,) = (shim for node in pipe.model.walk() for shim in node.shims)
    shim.load()
    words = shim.network.embeddings.word_embeddings.weight
    assert abs(float(words.detach().std()) - 0.02) < 0.001
