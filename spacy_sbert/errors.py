"""Every message the package raises or warns with: what was given, what was expected, and the remedy."""


class Errors:
    """Messages of exceptions; the names say what went wrong."""

    # Vectors on a Doc
    NO_VECTORS = (
        "This {kind} carries no sentence vectors{which}: its Doc was not processed by an 'sbert' pipe, or its user "
        "data did not travel with it. Process the text with the pipeline (nlp or nlp.pipe), or transport the Doc with "
        "its user data (DocBin(store_user_data=True), Span.as_doc(copy_user_data=True))."
    )
    NO_TOKEN_VECTORS = (
        "The span '{text}' is no row of the encoder (a whole Doc, or a sentence with unit = \"sent\"), and its Doc was "
        "processed with token_vectors = false, so its vector is not known. Set token_vectors = true in the config of "
        "the 'sbert' pipe to have vectors for any Span and Token."
    )
    UNEQUAL_WIDTHS = (
        "Cannot compare vectors of unequal width: {ours} and {theirs}. Both sides must come from the same sentence "
        "encoder; process both texts with the same pipeline."
    )
    NOT_COMPARABLE = (
        "Cannot compare with {given}: expected a Doc, Span, Token or Lexeme that has a vector. Process the other text "
        "with the same pipeline."
    )

    # Configuration
    UNKNOWN_POOLING = "Unknown pooling '{given}': expected one of {expected}."
    UNKNOWN_UNIT = "Unknown unit '{given}': expected one of {expected}."
    UNKNOWN_OVERFLOW = "Unknown overflow '{given}': expected one of {expected}."
    UNKNOWN_NORMALIZE = 'Unknown value {given!r} for normalize: expected true, false or "auto".'
    NOT_AN_ENCODER = (
        "The model of the 'sbert' pipe '{name}' is no sentence encoder: expected an architecture such as "
        "spacy-sbert.SentenceEncoder.v1 or spacy-sbert.SharedSentenceEncoder.v1, got the Thinc model '{given}'."
    )
    WARMUP = "Cannot warm up over {given} of the steps: expected a fraction from 0 to 1, such as 0.1."

    # Finding and loading an encoder
    UNKNOWN_MODULES = (
        'The folder {folder} describes a sentence encoder with {unknown}, and normalize = "auto" follows what the '
        "folder says; supported are Transformer, Pooling and Normalize. Set normalize = true or false to use the "
        "transformer and the pooling without {unknown}."
    )
    UNSAFE_PATH = "The file {file} names '{path}', which lies outside of its folder. Use an encoder that you trust."
    ENCODER_NOT_FOUND = (
        "The encoder '{name}' was found in none of the four places that are searched:\n"
        "  1. a local folder: {folder}\n"
        "  2. the Hugging Face cache: {cache}\n"
        "  3. an installed package: {package}\n"
        "  4. the Hugging Face hub: {hub}\n"
        "Check the name, or give a folder that holds the encoder, or download it once while online"
        "{remedy}."
    )
    NO_WEIGHTS = (
        "The folder {folder} holds no encoder that can be loaded: {missing} is missing. Expected a Hugging Face folder "
        "with config.json, weights (model.safetensors or pytorch_model.bin) and the tokenizer's files, as "
        "save_pretrained writes them."
    )
    WRONG_DIGEST = (
        "The weights {file} of the installed package {package} are not the published ones of '{name}': expected "
        "SHA-256 {expected}, got {given}. Reinstall the package from a source you trust."
    )
    ENCODER_DECODER = (
        "The model '{name}' ({kind}) is an encoder with a decoder, which has no one state a wordpiece: expected an "
        "encoder alone, such as BERT, MPNet or RoBERTa."
    )
    BAD_STATE = "The saved encoder is damaged: {reason}. Save the pipeline again, or load the encoder by its name."

    # Sharing a transformer
    NO_UPSTREAM = (
        "The 'sbert' pipe '{name}' listens to a transformer, but no 'transformer' component of spacy-transformers "
        '(upstream = "{upstream}") stands before it; the pipeline is {pipes}. Add one before it: '
        'nlp.add_pipe("transformer", before="{name}", config={{"model": {{"@architectures": '
        '"spacy-sbert.TransformerModel.v1"}}}}), or use spacy-sbert.SentenceEncoder.v1, which has its own encoder.'
    )
    CURATED_UPSTREAM = (
        "The transformer before the 'sbert' pipe{name} is a 'curated_transformer' (spacy-curated-transformers), whose "
        "output cannot be shared: expected a 'transformer' component of spacy-transformers. Use "
        "spacy-sbert.SentenceEncoder.v1, which has an encoder of its own, beside it."
    )
    NO_TRANSFORMER_OUTPUT = (
        "The shared transformer has not processed this Doc ('{text}'), so there is nothing to pool: it is disabled, "
        "excluded, or stands after the 'sbert' pipe. Enable it (nlp.enable_pipe(\"transformer\")), put it first, and "
        "while training with a frozen transformer list it in [training.annotating_components]."
    )

    # Training
    BAD_LOSS = (
        "The loss of the 'sbert' pipe '{name}' is no loss layer: expected a registered layer such as "
        "spacy-sbert.CosineSimilarityLoss.v1, got the Thinc model '{given}'."
    )
    NO_LOSS = (
        "The 'sbert' pipe '{name}' was built without a loss (loss = null) and cannot be trained. Set one in its "
        'config: [components.{name}.loss] @layers = "spacy-sbert.CosineSimilarityLoss.v1".'
    )
    WRONG_ROWS = (
        "The encoder's rows are not the members of the pair '{text}': it encoded {given}, but doc.spans['{key}'] says "
        "{expected}. The pair would be trained or scored wrongly. Use the span getter spacy-sbert.sentence_spans.v1 "
        '(spans_key = "{key}") in the config of the encoder: [components.transformer.model.get_spans] when the '
        "transformer is shared."
    )
    WRONG_MEMBER_COUNT = (
        "The example '{text}' has {given} members in doc.spans['{key}'], but the loss '{loss}' takes {expected}. Make "
        "one Doc an example, with one Span a member."
    )
    EMPTY_MEMBER = (
        "The example '{text}' has an empty member (number {number}) in doc.spans['{key}'], which has no vector to "
        "learn from. Remove the example."
    )
    NO_GOLD = (
        "The example '{text}' has no gold value '{gold}': expected a finite number in "
        "example.reference.spans['{key}'].attrs['{gold}']. spacy-sbert.PairCorpus.v1 and 'python -m spacy sbert "
        "convert' set it."
    )
    UNPAIRED_ROWS = "Expected as many rows of u as of v and of gold scores, got {u}, {v} and {gold}."

    # Reading data
    NO_PATH = (
        "spacy-sbert.PairCorpus.v1 was given no path. Set it in the config, or on the command line: "
        "--paths.train pairs.spacy --paths.dev pairs.spacy."
    )
    NO_FILE = "There is no file {path}. Check [paths] in the config, or run 'python -m spacy project assets'."
    NOT_SPACY = "Cannot write pairs to {path}: expected a name that ends in .spacy."
    UNKNOWN_FORMAT = (
        "Cannot read {path}: expected the official STS benchmark layout (.csv or .tsv) or pairs made by "
        "'python -m spacy sbert convert' (.spacy)."
    )
    NO_PAIRS = "{path} holds no pairs: expected {expected}."
    MISSING_COLUMN = (
        "{path}, line {line}: expected 7 tab-separated columns (genre, file, year, id, score, sentence1, sentence2), "
        "got {given}."
    )
    BAD_SCORE = "{path}, line {line}: expected a score from 0 to 5, got '{given}'."
    EMPTY_SENTENCE = "{path}, line {line}: {column} is empty. Both sentences of a pair need text."
    BAD_ENCODING = "{path}, line {line}: not UTF-8 ({reason}). Convert the file to UTF-8."
    WRONG_COUNT = "{path} holds {given} pairs, expected {expected}: the file is incomplete or another one."
    NOT_PAIRS = (
        "{path}: the Doc number {number} ('{text}') is no pair: expected two Spans in doc.spans['{key}'] and a score "
        "from 0 to 1 in its attrs['score']. Make the file with 'python -m spacy sbert convert'."
    )
    NO_SCORES = (
        "The pipeline has no 'sbert' pipe that scores pairs; its pipes are {pipes}. Add one: nlp.add_pipe(\"sbert\")."
    )
    NOT_FINITE = (
        "The similarity of the pair '{text}' is not finite: training has diverged. Lower the learning rate or clip "
        "the gradient."
    )


class Warnings:
    """Messages of warnings."""

    FOREIGN_ROWS = (
        "The shared transformer encodes overlapping windows, not whole Docs or sentences: vectors are pooled over the "
        "Doc's wordpieces instead, each token once, and differ from those of the encoder on its own. Set "
        '[components.transformer.model.get_spans] @span_getters = "spacy-sbert.sentence_spans.v1".'
    )
    TRUNCATED = (
        "{count} of {total} rows were longer than the encoder's limit of {limit} wordpieces and were cut; "
        'doc._.sbert_truncated is True for their Docs. Set overflow = "windows" in the encoder\'s config to average '
        'over windows instead, or unit = "sent" to encode sentences.'
    )
    TRAINING_CUT = "While training the 'sbert' pipe '{name}': in this batch, and maybe in later ones, "
    OTHER_POOLING = (
        "The encoder '{name}' was made for {expected} pooling, this pipeline uses {given} pooling: vectors differ from "
        'those its authors publish. Set pooling = "{expected}" unless that is what you want.'
    )
    NOTHING_TO_LEARN = (
        "The 'sbert' pipe '{name}' got a training batch without pairs and learned nothing from it: expected Docs with "
        "their members in doc.spans['{key}']. spaCy's own Corpus drops them; use spacy-sbert.PairCorpus.v1 as reader."
    )
