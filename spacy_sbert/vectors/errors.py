"""What is said of the way from text to vector."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    SHARED_PROMPT = (
        "Cannot put the prompt '{prompt}' before Docs: other components read the output of a shared transformer, too. "
        "Use spacy-sbert.SentenceEncoder.v1, which has an encoder of its own, or encode(texts)."
    )
    NO_CALIBRATION_TEXTS = "There are no texts to calibrate on. Give some hundred like those that will be encoded."
    NOT_CALIBRATED = (
        "precision = 'int8' rounds by ranges that were not found yet, and vectors would depend on which texts come "
        "first. Find them beforehand, on some hundred texts, with sbert.calibrate(texts) and nlp.to_disk, or choose "
        "another precision."
    )
    TOKEN_PRECISION = (
        "Cannot encode in precision = '{given}' with a token-to-vector model, a table of wordpieces or a "
        "curated_transformer: it works in float32. Leave precision out."
    )
    TOKEN_BUDGET = (
        "max_batch_items = {given} has no meaning for a token-to-vector model, a table of wordpieces or a "
        "curated_transformer, which takes a window of texts at once: leave it out, or set window."
    )
    BULK_NO_GPU = "There is no GPU {given}: {count} were found. Correct --gpu-ids, or leave it out to use the CPU."
    WORKERS_ENDED = (
        "One of {n_process} processes that encode ended by itself: what it said stands above. Each imports the main "
        "module: that must be a file or a notebook, not standard input, and guarded by "
        'if __name__ == "__main__". It may also have run out of memory: take fewer, or a smaller window.'
    )
    UNKNOWN_MODULES = (
        'The folder {folder} describes a sentence encoder with {unknown}, and normalize = "auto" follows what the '
        "folder says, which is Transformer, Pooling and Normalize. A Dense layer comes with python -m spacy sbert "
        "import {folder} OUT; set normalize = true or false to use the transformer and the pooling without {unknown}."
    )


class Warnings(errors.Warnings):
    """Of warnings and the log."""

    TRUNCATED = (
        "{count} of {total} rows were longer than the encoder's limit of {limit} wordpieces and were cut; "
        'doc._.sbert_truncated is True for their Docs. Set overflow = "windows" in the encoder\'s config to average '
        'over windows instead, or unit = "sent" to encode sentences.'
    )
