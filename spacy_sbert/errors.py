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
    PART_NOT_PROCESSED = (
        "This Doc was joined of several, and its part '{text}' carries no sentence vectors of the pipe '{name}'. "
        "Process each Doc with the pipeline before Doc.from_docs joins them, or the joined text: nlp(doc.text)."
    )
    PART_CUT = (
        "This Doc was joined of several, and whose vectors its part '{text}' has is not known: it was not processed by "
        "the pipe '{name}', or Span.as_doc cut it out of a Doc beside another one, and nothing tells where one ends. "
        "Process each Doc with the pipeline before Doc.from_docs joins them, or the joined text: nlp(doc.text)."
    )
    PART_WITHOUT_TEXT = (
        "This Doc was cut or joined, and the vectors of its part '{text}' were stored by an earlier version of "
        "spacy-sbert, without the text that they are of. Process the text again: nlp(doc.text)."
    )
    UNEQUAL_KINDS = (
        "This Doc was joined of parts whose vectors are of several kinds ({ours}; {theirs}), which have no mean. "
        "Process all of them with the same pipeline."
    )

    # Meta-embeddings
    META_UNKNOWN_METHOD = "Unknown method '{given}' of meta-embedding: expected one of {expected}."
    META_UNKNOWN_OPTION = "The method '{method}' has no setting {given}: expected some of {expected}."
    META_BAD_OPTION = "Bad value {given!r} for {name}: expected {expected}."
    META_NO_SIZE = (
        "size = {given}, but the width of the method '{method}' follows from the members. Leave size out, or use "
        "svd, gcca or ae."
    )
    META_ONE_MEMBER = (
        "A meta-embedding combines at least two members, given: {given}. Add another 'sbert' pipe of another name, "
        "model or pooling before it, or a function to its functions; do not exclude one when loading."
    )
    META_TWICE = "Members of a meta-embedding need names of their own, given: {given}. Rename one of them."
    META_MISSING_PIPE = (
        "The meta-embedding '{name}' combines the pipe {missing}, which the pipeline does not have (it has: "
        "{expected}). Add it before '{name}', or do not exclude it when loading; to do without it, take it out of "
        "'pipes' and fit again."
    )
    META_NO_FUNCTION = (
        "The member '{name}' of a meta-embedding is no function but a {given}: expected a registered function, such as "
        '[components.sbert_meta.functions.{name}] @misc = "spacy-sbert.MeanStaticVectors.v1".'
    )
    META_BAD_FUNCTION = (
        "The function '{name}' of a meta-embedding gave an array of shape {given} for {expected} texts: expected a row "
        "for each."
    )
    META_FUNCTION_NOT_FITTED = (
        "Weights by smooth inverse frequency are not known yet: fit the meta-embedding that the function is a member "
        "of, with nlp.initialize or python -m spacy sbert fit-meta."
    )
    META_NO_STATIC_VECTORS = (
        "A member of the meta-embedding takes static vectors, and the pipeline's vocab has none. Load them, for "
        "example with python -m spacy init vectors, or take the member out."
    )
    META_NO_MEMBER_VECTORS = (
        "The member '{name}' of a meta-embedding left no vector on the Doc '{text}': its pipe is disabled, or stands "
        "behind the meta-embedding. Enable it, or move it before."
    )
    META_NOT_FINITE = (
        "The member '{name}' of a meta-embedding has a number that is not finite in the vector of sentence {row} "
        "(from 0). Mend that encoder, or take the member or the sentence out."
    )
    META_NOT_FINITE_TEXT = (
        "The member '{name}' of a meta-embedding has a number that is not finite in its vector of '{text}'. Mend that "
        "encoder, or take the member out."
    )
    META_UNEQUAL_COUNTS = (
        "The member '{name}' of a meta-embedding has {given} vectors, '{first}' has {n}: expected those of the same "
        "sentences."
    )
    META_EMPTY_CORPUS = (
        "There is no sentence to fit the meta-embedding on: the corpus is empty, or all its sentences are too long. "
        "Give one with sentences, or a higher max_tokens."
    )
    META_ZERO_VARIANCE = (
        "The member '{name}' of a meta-embedding has the same vector for all {n} sentences. Take it out, or fit on "
        "sentences that it tells apart."
    )
    META_RANK = (
        "Asked for size {size}, but by the method '{method}' the members ({names}) have only {rank} directions to "
        "give on {n} sentences. Set size to at most that, or leave it out to take as many as there are. The directions "
        "of each member, of the numbers in its vectors: {each}."
    )
    META_SINGULAR = (
        "The covariance of the member '{name}' cannot be inverted with tau = {tau}: its vectors lie in {rank} "
        "directions, of the {width} that they are wide. Set tau higher, such as 0.1."
    )
    META_DIVERGED = (
        "The loss of the autoencoder is not finite in epoch {epoch}. Set learn_rate lower than {learn_rate}, or "
        "normalize = true."
    )
    META_NOT_FITTED = (
        "The meta-embedding by '{method}' has not been fitted: fit it on plain sentences with nlp.initialize, "
        "python -m spacy sbert fit-meta, or fit of the estimator."
    )
    META_OTHER_WIDTHS = "Members of widths {given}, but the meta-embedding was fitted on {expected}. Fit it again."
    META_OTHER_MEMBERS = (
        "The meta-embedding '{name}' was fitted on the members {expected}, the pipeline gives it {given}. Restore the "
        "members, in this order, or fit again with python -m spacy sbert fit-meta."
    )
    META_OTHER_SETTINGS = (
        "The meta-embedding '{name}' was saved with {expected}, the config says {given}. Restore the config, or fit "
        "again with python -m spacy sbert fit-meta."
    )
    META_BAD_STATE = "This is no saved meta-embedding: expected {what}, found {given}. Save it again."
    META_CHANGED_WIDTH = (
        "The vectors of the member '{name}' of a meta-embedding change their width from {first} to {given} numbers."
    )
    META_CACHE_CHANGED = "The members' vectors in {folder} changed while they were written. Give each run a folder."
    META_NO_TEXT = '{path}, line {line}: expected an object with a string "text", found {given}.'
    META_NOT_A_META = "The pipe '{name}' is no 'sbert_meta' but a {given}: name the pipe to fit."
    META_NO_PIPELINE = "To fit '{name}', its pipes are needed: call nlp.initialize, or give initialize the nlp."
    META_ROW_OUTSIDE = (
        "A member's row, characters {start} to {end}, reaches beyond the Doc '{text}', which is a part of another one. "
        "Process its text again."
    )
    META_SPAN = (
        "The span '{text}' is no row (a whole Doc, a sentence, or a member of a pair), and the meta-embedding '{name}' "
        "stores vectors of rows alone. Ask the pipe: nlp.get_pipe('{name}').vector(span)."
    )
    META_SIZE = (
        "size = {size}, but by the method '{method}' the members have at most {most} directions to give on {n} "
        "sentences: {each}. Leave size out to take as many as there are."
    )
    META_MORE_SENTENCES = " More sentences may give more directions."
    META_UNCORRELATED = (
        "The members ({names}) have no direction to give by the method '{method}': on these {n} sentences no number of "
        "one correlates with any of another. Use the method svd, or other members."
    )
    META_LARGE_NUMBERS = (
        "The numbers in the vectors of the member '{name}' of a meta-embedding are too large for their squares. Set "
        "normalize = true, or scale them down."
    )

    # Configuration
    UNKNOWN_POOLING = (
        "Unknown pooling '{given}': expected one of {expected}, or several joined with '+', such as cls+mean."
    )
    UNKNOWN_ACTIVATION = "Unknown activation '{given}' of a dense layer: expected one of {expected}."
    DENSE_WIDTH = (
        "The dense layer takes vectors of width {expected}, but the pooled ones have width {given}. Set nI to that: "
        "the encoder's width, times the number of poolings."
    )
    DENSE_NOT_INITIALIZED = (
        "The dense layer of the sentence encoder has no weights yet: call nlp.initialize() to draw them and train, or "
        "load a pipeline that has them (python -m spacy sbert import)."
    )
    DENSE_SPAN = (
        "The span '{text}' is no row (a whole Doc, a sentence, or a member of a pair), and its vector needs the dense "
        "layer of the pipe '{name}'. Ask the pipe: nlp.get_pipe('{name}').vector(span)."
    )
    TRUNCATE_DIM = "Cannot truncate vectors to {given} dimensions: they have {width}. Set truncate_dim to at most that."
    UNKNOWN_PROMPT = (
        "The encoder has no prompt '{given}', those it has are {expected}. Name it in the encoder's "
        "config, prompts = "
        '{{"{given}": "..."}}, or give the text itself as prompt in place of prompt_name.'
    )
    TWO_PROMPTS = "Got both prompt_name = {name!r} and prompt = {prompt!r}: give one of them."
    SHARED_PROMPT = (
        "Cannot put the prompt '{prompt}' before Docs: other components read the output of a shared transformer, too. "
        "Use spacy-sbert.SentenceEncoder.v1, which has an encoder of its own, or encode(texts)."
    )
    PROMPT_WINDOWS = (
        'include_prompt = false and overflow = "windows" do not go together: only the first window of a text begins '
        'with the prompt. Set overflow = "truncate".'
    )
    PROMPT_POOLING = (
        "include_prompt = false leaves the first wordpieces out, which has no one meaning with pooling = '{given}': "
        "expected {expected}."
    )
    UNKNOWN_UNIT = "Unknown unit '{given}': expected one of {expected}."
    UNKNOWN_OVERFLOW = "Unknown overflow '{given}': expected one of {expected}."
    UNKNOWN_NORMALIZE = 'Unknown value {given!r} for normalize: expected true, false or "auto".'
    UNKNOWN_PRECISION = "Unknown precision '{given}': expected one of {expected}."
    REFERENCE_BATCH = (
        'max_batch_items = {given} and precision = "reference" do not go together: that encodes in the batches of '
        'sentence-transformers. Leave max_batch_items out, or set precision = "float32".'
    )
    FLOAT16_ON_CPU = (
        'precision = "float16" needs a GPU, and the CPU is in use: set precision = "bfloat16" or "float32", or run on '
        "a GPU (--gpu-id 0)."
    )
    NOTHING_FROZEN = "Cannot freeze '{given}': the transformer has no such parameter or module. It has {expected}."
    NOT_AN_ENCODER = (
        "The model of the 'sbert' pipe '{name}' is no sentence encoder: expected an architecture such as "
        "spacy-sbert.SentenceEncoder.v1 or spacy-sbert.SharedSentenceEncoder.v1, got the Thinc model '{given}'."
    )
    WRONG_SETTING = "Cannot use {name} = {given}: expected {expected}."
    WARMUP = "Cannot warm up over warmup = {given} of the steps: expected a fraction from 0 to 1, such as 0.1."

    # Texts without Docs
    NO_SBERT_PIPE = (
        "The pipeline has no 'sbert' pipe{named}: those it has are {expected}. Name one of them, or add one with "
        'nlp.add_pipe("sbert").'
    )
    NO_TEXT_ENCODER = (
        "Cannot encode texts without Docs: the 'sbert' pipe '{name}' listens to a transformer that is not of this "
        "package, or is in no pipeline. Give the 'transformer' pipe the architecture "
        "spacy-sbert.TransformerModel.v1, or use nlp.pipe(texts)."
    )
    NOT_TEXTS = "Cannot encode {given}: expected several texts, such as a list of str. Put a single text into a list."
    NOT_STR = "Cannot encode text number {number}, {given}: expected str."
    NOT_A_DOC = "There is no vector of {given}: expected a Doc, Span or Token that the pipeline has processed."
    HALF_CHARACTER = (
        "Cannot encode {what}, {given}: it has half a character (a lone surrogate, U+D800 to U+DFFF) at "
        "position {position}. Decode the bytes it comes from as UTF-8, or replace it: "
        "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')."
    )

    # Folders of sentence-transformers
    IMPORT_MODULE = (
        "The folder {folder} has the module {given}, which is unknown here: expected Transformer, Pooling, any number "
        "of Dense, and maybe Normalize, in this order, all of sentence_transformers. Code that comes with a folder is "
        "never run."
    )
    IMPORT_ORDER = (
        "The folder {folder} has the modules {given}: expected Transformer, Pooling, any number of Dense, and maybe "
        "Normalize, in this order."
    )
    IMPORT_POOLING = (
        "The Pooling module of {folder} asks for something unknown here, in {file}: expected some of {expected}."
    )
    IMPORT_DENSE = "The Dense module {folder} cannot be imported: {reason}."
    FOLDER_EXISTS = "There is something at {path} already: give the name of a new folder, or remove it."
    EXPORT_DENSE = (
        "The dense layer of the pipe '{name}' has the layer '{given}', which sentence-transformers has no module for: "
        "expected spacy-sbert.Dense.v1, or several in chain.v1."
    )

    # Model cards
    CARD_NO_ENCODER = (
        "Nothing to write a card about: none of the pipes makes sentence vectors (given: {given}). Expected a pipeline "
        "with an 'sbert' or 'sbert_meta' pipe."
    )
    CARD_NO_PIPE = "The pipe '{name}' makes no sentence vectors: expected one of {given}."

    # Searching among vectors, Spans and files
    SEARCH_QUERY = "Cannot search for {given}: expected a str, a Doc, a Span, or where it says so a vector."
    SEARCH_EMPTY_QUERY = "Cannot search for a query without a vector: it has no text. Give it some."
    SEARCH_NO_PIPE = (
        "Cannot encode a query given as str: no living 'sbert' pipe named '{name}' shares the vocab of this Doc, which "
        "came without its pipeline, or is of another kind of pipe. Give the query as a Doc, nlp(query), or read Docs "
        "with the vocab of the loaded pipeline: doc_bin.get_docs(nlp.vocab)."
    )
    SEARCH_NOT_DOCS = "Cannot take Spans of {given}, number {number} (from 0) of docs: expected Docs, nlp.pipe(texts)."
    SEARCH_IN_CONTEXT = (
        "The sentence '{text}' has no vector of its own: the encoder's rows are whole Docs, so that it would be pooled "
        "in the context of its Doc, and sentences that have nothing in common look alike. Encode sentences, too: "
        '[components.{name}.model.get_spans] unit = "doc+sent" (of the component "transformer" where that is shared), '
        "and set sentence boundaries before the encoder."
    )
    SEARCH_NO_SPANS = (
        "There is no Span with a vector to search in: the Docs are empty, or have no such unit. Give others, or "
        'another unit, such as unit = "doc".'
    )
    SEARCH_SPAN_COUNT = (
        "The index holds {given} vectors, but there are {expected} Spans with a vector. Give the Spans that it was "
        "built of, in their order."
    )
    SEARCH_BAD_COSINE = "Cannot use the threshold {given}: expected a cosine similarity from -1 to 1."
    SEARCH_NO_SKLEARN = "k-means needs scikit-learn. Install it: pip install 'spacy-sbert[search]'."
    SEARCH_NO_FAISS = "An index needs FAISS. Install it: pip install 'spacy-sbert[search]'."
    SEARCH_RECALL_SHAPES = (
        "Cannot compare what was found, of shape {found}, with what exact search finds, of shape {exact}: expected "
        "both of one shape (queries, k)."
    )
    SEARCH_ZERO_VECTOR = (
        "Cannot quantise row {row} of the {name}: it is zero, as that of a text without wordpieces, and would become "
        "similar to something. Leave it out."
    )
    SEARCH_OTHER_VECTORS = (
        "Cannot rescore by vectors of shape {given}: expected {expected}, the vectors that were quantised."
    )
    SEARCH_BAD_ARRAYS = "{path} holds no quantised vectors ({reason}). Quantise and save them again."
    SEARCH_UNKNOWN_KIND = "Unknown kind of index '{given}': expected one of {expected}."
    SEARCH_ROW_COUNT = "Given {given} texts or ids for {expected} vectors: expected one for each."
    SEARCH_NO_INDEX = "There is no index in {folder}. Build one, and save it there."
    SEARCH_BAD_INDEX = "The index is damaged: {path}: {reason}. Build it again."
    SEARCH_NO_ENCODER = (
        "The index in {folder} does not say which encoder made its vectors, so they cannot be searched with '{name}'. "
        "Build it again with encoder = identify(pipe), or load it without an encoder if you know that it fits."
    )
    SEARCH_OTHER_WIDTH = (
        "The index in {folder} holds vectors of width {theirs}, made by '{name}', but '{given}' makes vectors of width "
        "{ours}. Search it with the pipeline that it was built with, or build it again."
    )
    SEARCH_OTHER_ENCODER = (
        "The index in {folder} was built with another encoder, '{name}', whose weights or settings are not those of "
        "'{given}'. Search it with the pipeline that it was built with, or build it again."
    )
    SEARCH_OTHER_TEXTS = (
        "The index in {folder} was built of other texts than those of {corpus}. Delete it to build it again, or give "
        "another folder."
    )
    SEARCH_OTHER_KIND = (
        "The index in {folder} is of the kind {theirs}, not {given}. Delete it to build another, or leave --kind out."
    )
    SEARCH_NO_TEXTS = "The index in {folder} was saved without texts. Give the corpus that it was built of."
    SEARCH_EMPTY_CORPUS = "{path} holds no text: expected one a line, or .jsonl with text."
    SEARCH_SINGLE_TEXT = "{path} holds one text: expected two or more, to compare them."
    SEARCH_BAD_OUTPUT = "Cannot write to {path}: expected a name that ends in .tsv or .jsonl."
    SEARCH_TAB = (
        "Cannot write text number {number}, '{text}', to a .tsv file: it has a tab or a line end in it. Write .jsonl."
    )
    SEARCH_BAD_METHOD = "Unknown method '{given}': expected one of {expected}."
    SEARCH_NO_COUNT = "k-means needs to know how many clusters to find: give n_clusters (--n-clusters)."
    SEARCH_TOO_MANY = (
        "Cannot cluster {given} texts hierarchically: all their distances are kept, so at most {most} are expected. "
        'Use the method "communities" or "kmeans", or take a part of the texts.'
    )
    SEARCH_UNUSED_OPTIONS = "The method '{method}' takes no {given}: expected some of {expected}."

    # Re-ranking
    RERANKER_NO_MODEL = (
        "The model of the 'sbert_reranker' pipe '{name}' is no cross-encoder: expected the architecture "
        "spacy-sbert.CrossEncoder.v1, got the Thinc model '{given}'."
    )
    RERANKER_UNKNOWN_OBJECTIVE = "Unknown objective '{given}' of a reranker: expected one of {expected}."
    RERANKER_UNKNOWN_ACTIVATION = "Unknown activation '{given}' of a cross-encoder: expected one of {expected}."
    RERANKER_FOREIGN_ACTIVATION = (
        "The folder of the cross-encoder names the activation '{given}', which is not supported: expected one of "
        "{expected}. Set activation to one of them in the config of the model."
    )
    RERANKER_SOFTMAX_OF_ONE = (
        'Softmax of a single output is always 1. Set activation = "sigmoid" or "identity" in the config of the '
        "cross-encoder, or n_outputs to 2 or more."
    )
    RERANKER_MAX_LENGTH = "Cannot read pairs of max_length = {given} wordpieces: expected {expected}."
    RERANKER_NO_PAIR = (
        "Cannot score pair number {number}, {given}: expected two texts (str, Doc or Span), such as (query, passage)."
    )
    RERANKER_NO_PAIRS = "Cannot score {given}: expected several pairs of texts, such as a list of (query, passage)."
    RERANKER_ONE_TEXT = "Cannot rank {given}: expected several texts, such as a list. Put a single text into a list."
    RERANKER_SEVERAL_OUTPUTS = (
        "Cannot rank with '{name}', whose cross-encoder gives {given} numbers a pair: expected one. Use score_pairs "
        "and choose a column, or a cross-encoder with n_outputs = 1."
    )
    RERANKER_NOT_FINITE = (
        "The score that '{name}' gives to the pair ('{first}', '{second}') is not finite: training has diverged, or "
        "the weights are damaged. Use other weights, or train with a lower learning rate."
    )
    RERANKER_NOT_INITIALIZED = (
        'The cross-encoder has {given} outputs, which do not fit the objective "{objective}". Call nlp.initialize '
        'before training, with examples that carry labels for "classification", or set n_outputs.'
    )
    RERANKER_UNKNOWN_LABEL = (
        "The label '{given}' is unknown to the reranker, which has outputs for {known}. Correct the example, or "
        "initialize the pipe with all labels, from the examples or from [initialize.components.sbert_reranker] labels."
    )
    RERANKER_LABELS_OF_SCORES = (
        'Labels were given ({given}), but the objective "regression" learns scores. Set objective = '
        '"classification", or leave the labels out.'
    )

    # Pictures
    VISUAL_STYLE = "Unknown style '{given}' of a picture: expected one of {expected}."
    VISUAL_OPTION = "The style '{style}' has no option '{given}': expected some of {expected}."
    VISUAL_NOT_DOCS = (
        "Cannot draw {given}, number {number} (from 0) of what was given: expected Docs and Spans. Process texts "
        "first: render(nlp.pipe(texts))."
    )
    VISUAL_NO_SENTENCES = (
        "Cannot draw the sentences of '{text}': the Doc has no sentence boundaries. Put a sentencizer, senter or "
        "parser into the pipeline, or give a list of Docs or Spans."
    )
    VISUAL_NO_VECTOR = (
        "Number {number} (from 0) of the texts to draw, '{text}', has no vector: it has no words, or its Doc was not "
        "processed by a pipe that makes vectors, such as 'sbert', or its user data did not travel with it. Leave it "
        "out, or process the text with the pipeline."
    )
    VISUAL_TOO_FEW = (
        "Cannot draw {given} texts: expected at least {least}. Give more; for the sentences of one Doc give the Doc "
        "itself, not a list of it."
    )
    VISUAL_TOO_MANY_CELLS = (
        "Cannot draw a heat map with {given} texts on a side: expected at most {most}. Choose some of them, or draw "
        'all with style = "map".'
    )
    VISUAL_TOO_MANY_TOKENS = (
        "The tokens of these texts have {given} similarities to the texts of the other side: expected at most {most}, "
        'which a browser can hold. Draw sentences, or fewer texts, or set options = {{"tokens": False}}.'
    )
    VISUAL_TOO_MANY_POINTS = (
        "Cannot draw a map of more than {most} texts, which is what a browser can hold. Draw a random sample of them, "
        "such as random.sample(texts, {most})."
    )
    VISUAL_TOO_MANY_LABELS = (
        "Cannot tell {given} labels apart in one picture: expected at most {most}. Put the rare ones together, such as "
        "under the label 'other'."
    )
    VISUAL_LABEL_COUNT = "Given {given} labels, expected one for each of the {expected} texts."
    VISUAL_RANGE = (
        "Cannot give similarities from {low} to {high} colours: expected low below high, high above 0, such as low = "
        "0.6, high = 1.0."
    )
    VISUAL_PROJECTION = "Unknown projection '{given}': expected one of {expected}."
    VISUAL_ONE_DIRECTION = (
        "All {n} vectors have the same direction, so there is nothing to map. Give texts that differ, or look for why "
        "the pipeline gives them the same vector."
    )
    VISUAL_NO_SKLEARN = "t-SNE needs scikit-learn. Install it: pip install 'spacy-sbert[visual]'."
    VISUAL_NO_IPYTHON = (
        "Showing a picture in a notebook needs IPython, which every notebook has. Without one set jupyter = False, and "
        "write the returned HTML to a file."
    )

    # Bulk: files of texts to files of vectors
    BULK_UNKNOWN_INPUT = (
        "Cannot read texts from {path}: expected a name that ends in one of {expected}, all but .parquet also .gz."
    )
    BULK_UNKNOWN_OUTPUT = "Cannot write vectors to {path}: expected a name that ends in one of {expected}."
    BULK_NO_COLUMNS = (
        "Cannot write ids or texts to {path}: an array has none. Give the output a name that ends in .parquet, or "
        "leave --id-column and --with-text out."
    )
    BULK_NO_PYARROW = "Writing {path} needs pyarrow. Install it: pip install 'spacy-sbert[parquet]'."
    BULK_UNKNOWN_DTYPE = "Unknown dtype '{given}' of the output: expected one of {expected}."
    BULK_NOT_A_NUMBER = (
        "{path} is read without a header, but a column was named '{given}': expected a number counted from 0, such as "
        "--column 1. Leave --no-header out to go by names."
    )
    BULK_NO_ID_IN_TEXT = (
        "{path} has no column '{column}': a .txt file has a text a line, and no ids. Leave --id-column out."
    )
    BULK_BAD_ID = (
        "{path}, line {line}: expected a string or a whole number of 64 bits in the column '{column}', got {given!r}. "
        "Repair the line, or leave --id-column out."
    )
    BULK_MIXED_IDS = (
        "{path}: the column '{column}' has strings and whole numbers. Make all ids of one type, or leave --id-column "
        "out."
    )
    BULK_SAME_FILE = "{path} is the input, and was given as the output, too. Give the output another name."
    BULK_OUTPUT_EXISTS = "{path} is there already. Give the output another name, or replace the file with --overwrite."
    BULK_INPUT_CHANGED = (
        "{path} was changed while it was read. Run the same command again; if the change is to stay, with --restart."
    )
    BULK_OTHER_RUN = (
        "{folder} holds an interrupted run that was begun otherwise: {differing}. Go on with the input and the options "
        "of that run, or begin anew with --restart."
    )
    BULK_DAMAGED = (
        "{folder} holds an interrupted run whose run.json cannot be read ({reason}). Begin anew with --restart."
    )
    BULK_LOCKED = (
        "Another process (number {pid}) writes the same output: it has locked {path}. Wait until it is done, or stop "
        "it."
    )
    BULK_CANNOT_WRITE = (
        "Cannot write {path}: {reason}. What is done is kept: make room (or mend what keeps the file from being "
        "written), and run the same command again to go on."
    )
    BULK_NOT_FINITE = (
        "The vector of row {row} (from 0) is not finite in {dtype}. Write float32, or encode in another precision "
        "(--precision float32)."
    )
    BULK_NO_GPU = "There is no GPU {given}: {count} were found. Correct --gpu-ids, or leave it out to use the CPU."
    BULK_BAD_GPU_IDS = "Cannot use --gpu-ids {given}: expected whole numbers with commas between, such as 0,1."

    # What stands under the name of a file
    NOT_A_FILE = "{path} is {kind}: expected a file. Write what is to be read to one, and give its name."
    NOT_TO_WRITE = (
        "{path} is {kind}: expected nothing there, or a file of its own. Nothing was written through it. Remove it, or "
        "give another name."
    )
    CANNOT_WRITE = (
        "Cannot write {path}: {reason}. What was there before stays: make room (or mend what keeps the file from being "
        "written), and run the same command again."
    )
    BAD_SEAL = "its SHA-256 is not the one that was saved with it: it was damaged or changed"

    # Finding and loading an encoder
    UNKNOWN_MODULES = (
        'The folder {folder} describes a sentence encoder with {unknown}, and normalize = "auto" follows what the '
        "folder says, which is Transformer, Pooling and Normalize. A Dense layer comes with python -m spacy sbert "
        "import {folder} OUT; set normalize = true or false to use the transformer and the pooling without {unknown}."
    )
    BAD_FOLDER_FILE = "Cannot read {file}, a part of the encoder's folder: {reason}. Get the encoder anew."
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
    BAD_WEIGHTS = "The file of weights {file} is damaged or not whole ({reason}). Copy or download it again."
    WRONG_DIGEST = (
        "The weights {file} of the installed package {package} are not the published ones of '{name}': expected "
        "SHA-256 {expected}, got {given}. Reinstall the package from a source you trust."
    )
    ENCODER_DECODER = (
        "The model '{name}' ({kind}) is an encoder with a decoder, which has no one state a wordpiece: expected an "
        "encoder alone, such as BERT, MPNet or RoBERTa."
    )
    BAD_STATE = "The saved encoder is damaged: {reason}. Save the pipeline again, or load the encoder by its name."
    REMOTE_CODE = (
        "The encoder '{name}' comes with Python code of its own ({files} name it), which is not run: the config says "
        "trust_remote_code = {asked}, and that is its author's word, not yours. If you trust the code, set "
        "trust_remote_code = true and the environment variable SPACY_SBERT_TRUST_REMOTE_CODE=1; else use another "
        "encoder. Transformers' stock classes are not taken in its place: they would give other vectors."
    )
    FOREIGN_TRANSFORMER = (
        "The file {file} names the module {given}: expected sentence_transformers.models.Transformer. Other classes "
        "are not run, and a stock one in its place would give other vectors. Use another encoder."
    )
    FOREIGN_CLASS = (
        "The file {file} names the architecture {given}, for which Transformers would take a class that makes other "
        "vectors: expected {expected}. Use another encoder, or correct architectures or model_type in that file."
    )
    MISSING_WEIGHTS = (
        "The weights in {folder} lack {names}, which config.json asks for, and which would be random. Get the encoder "
        "anew, or correct config.json."
    )
    UNEXPECTED_WEIGHTS = (
        "The weights in {folder} hold {names}, which the encoder that config.json describes has no place for. Get the "
        "encoder anew, or correct config.json; for fewer layers set num_hidden_layers in transformer_config."
    )
    UNFIT_WEIGHTS = (
        "The weights in {folder} and the file {config} do not make an encoder ({reason}). Get the encoder anew, or "
        "correct config.json."
    )
    BAD_FOLDER_VALUE = (
        "The file {file}, a part of the encoder's folder, says {key} = {given}: expected {expected}. Correct it, or "
        "get the encoder anew."
    )
    BAD_TOKENIZER = (
        "Cannot load the tokenizer of {folder} ({reason}): tokenizer.json, tokenizer_config.json or the vocabulary is "
        "damaged, or not whole. Get the encoder anew."
    )
    BAD_SETTING = "Cannot load the encoder with this {setting}: {reason}. Correct it in the config of the model."
    UNKNOWN_KEY = (
        "Unknown key '{given}' in {setting}, which Transformers would ignore{near}. Correct it in the config of the "
        "model, or leave it out."
    )
    NO_ROOM = (
        "The encoder in {folder} is limited to {given} wordpieces (max_seq_length, model_max_length or the number of "
        "its positions), of which {special} are special tokens: no text fits. Expected more than {special}."
    )
    UNKNOWN_DEFAULT_PROMPT = (
        "The encoder's folder (config_sentence_transformers.json) says default_prompt_name = '{given}', but has no "
        'such prompt; those it has are {expected}. Name it in the encoder\'s config, prompts = {{"{given}": "..."}}, '
        'or set default_prompt_name there, "" for none.'
    )

    # Saved pipelines
    DAMAGED_FILE = (
        "The file {file} of the saved pipeline is damaged: {reason}. It was changed after it was written, or writing "
        "or copying it was cut short. Save or copy the pipeline again{remedy}."
    )
    DAMAGED_BYTES = (
        "The saved model (the file 'model' in the folder of its component, or bytes of it) is damaged: {reason}. It "
        "was changed after it was written, or writing or copying it was cut short. Save or copy the pipeline again; "
        "if 'spacy train' was stopped while it wrote model-last, try model-best beside it."
    )

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

    OTHER_SPANS_KEY = (
        "The 'sbert' pipe '{name}' has spans_key = '{key}', but the span getter of its encoder takes the members of an "
        "example from doc.spans['{given}']: pairs would not be trained, or not scored. Set spans_key = '{key}' in "
        "get_spans, spacy-sbert.sentence_spans.v1, too ([components.transformer.model.get_spans] when the transformer "
        "is shared), or '{given}' in the pipe."
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
        "The example '{text}' has {given} members in doc.spans['{key}'], but the loss '{loss}' takes {expected} in "
        "this batch. Make one Doc an example, with one Span a member; all examples of an objective have as many."
    )
    EMPTY_MEMBER = (
        "The example '{text}' has an empty member (number {number}) in doc.spans['{key}'], which has no vector to "
        "learn from. Remove the example."
    )
    NO_GOLD = (
        "The example '{text}' has no gold value '{gold}': expected {kind} in "
        "example.reference.spans['{key}'].attrs['{gold}']. spacy-sbert.PairCorpus.v1 and 'python -m spacy sbert "
        "convert' set it where the data have it; else the data are not those of this objective: choose another loss."
    )
    UNKNOWN_OBJECTIVE = (
        "The example '{text}' is of the objective '{given}', but the loss spacy-sbert.MultiTaskLoss.v1 has {expected}. "
        "Give the corpora in spacy-sbert.MultiCorpus.v1 the names of the objectives in [components.sbert.loss]."
    )
    SINGLE_CLASS = (
        "The loss '{loss}' learns to tell labels apart, but all examples have the same: {given}. Train on data with "
        "two labels or more, or give all of them in [initialize.components.sbert] labels, if the first examples do not "
        "show them."
    )
    LABELS_OF_NO_OBJECTIVE = (
        "[initialize.components.sbert] labels names the objectives {given}, expected some of: {expected}. Give a "
        "single objective a list of labels, and those of spacy-sbert.MultiTaskLoss.v1 a list each, by their names."
    )
    LOSS_NOT_FINITE = (
        "The loss '{loss}' is not finite in the batch that begins with '{text}': training has diverged. Lower the "
        "learning rate, clip the gradient, or use float32 or bfloat16 in place of float16."
    )
    NO_SUCH_HEAD = (
        "Cannot classify with the 'sbert' pipe '{name}' for the objective {given!r}: it has trained heads for {names}."
    )
    NOT_ONE_HEAD = (
        "Cannot classify with the 'sbert' pipe '{name}': it has {given} trained classification heads. Expected one; "
        "train with spacy-sbert.SoftmaxLoss.v1, or name the objective of several: {names}."
    )
    GOLD_OUT_OF_RANGE = (
        "The example '{text}' has the gold score {given}: expected one from {low:g} to {high:g} in "
        "example.reference.spans['{key}'].attrs['score']. Scale it, as spacy-sbert.PairCorpus.v1 does by min_score and "
        "max_score: scores from 0 to 5 are divided by 5."
    )
    TRAINED_BY_TWO_THREADS = (
        "The thread '{other}' is training this encoder: it has begun a step, and awaits its gradient. Train it in "
        "one thread at a time; another may use it meanwhile (nlp, nlp.pipe, encode)."
    )

    # Losses
    UNKNOWN_LOSS_SETTING = "Unknown {setting} '{given}' of the loss '{loss}': expected one of {expected}."
    BAD_LOSS_SETTING = "The loss '{loss}' cannot work with {setting} = {given}: expected {expected}."
    LOSS_MEMBER_COUNT = "The loss '{loss}' takes examples of {expected} members, got {given}."
    UNEQUAL_ROWS = "The loss '{loss}' expects as many rows of every member as of gold values, got {given}."
    NO_HEAD = (
        "The loss '{loss}' has a classifier that was not initialized. Call nlp.initialize with examples that carry "
        "labels, or load a trained pipeline."
    )
    TOO_FEW_LABELS = (
        "The loss '{loss}' needs at least two labels to tell apart, got {given}. Give it more examples, or name the "
        "labels in [initialize.components.sbert] labels."
    )
    OTHER_LABELS = (
        "The classifier of the loss '{loss}' was made for the labels {known}, and cannot be initialized for {given}. "
        "Build the pipe anew to train a classifier for other labels."
    )
    LABEL_WITHOUT_HEAD = (
        "The label '{given}' is unknown to the loss '{loss}', whose classifier was made and saved for the labels "
        "{known}. Correct the example, or initialize the pipe anew with all labels, from the examples or from "
        "[initialize.components.sbert] labels."
    )
    WRONG_HEAD_WIDTH = (
        "The classifier of the loss '{loss}' was made for {expected} features an example, got {given}: the encoder's "
        "width has changed since. Use the encoder it was trained with, or build the pipe anew."
    )
    OTHER_CONCATENATION = (
        "The classifier of the loss '{loss}' was trained and saved with the concatenation {saved}, but the config says "
        "{given}. Restore it in the config, or build the pipe anew."
    )
    NO_NEGATIVES = (
        "The loss '{loss}' got a batch of one pair, which has no negatives to rank. Set training.batcher.size to at "
        "least 2, or give each example a third member, its hard negative."
    )
    GOLD_NOT_BINARY = "The loss '{loss}' expects gold scores of 0 (unlike) or 1 (alike), got {given}."
    ODD_WIDTH = (
        "The loss '{loss}' reads a vector as complex numbers, the first half real and the second imaginary: expected "
        "an even width, got {given}. Use another encoder, or spacy-sbert.CoSENTLoss.v1."
    )
    TOO_NARROW = (
        "The loss '{loss}' is to cut vectors to {given} dimensions, but they are {width} wide. Lower its dims to at "
        "most {width}."
    )
    TEACHER_WIDTH = (
        "The vectors to learn are {width} wide, the teacher's are {teacher} wide. Choose a teacher of the same width "
        "for the loss '{loss}', or spacy-sbert.ProjectedDistillationLoss.v1, which takes any."
    )
    PROJECTION_WIDTHS = (
        "The projection of the loss '{loss}' has the widths {known} (teacher, encoder), and the batch {given}. Call "
        "nlp.initialize with examples of the teacher, or build the pipe anew for another teacher."
    )
    NO_OBJECTIVES = "The loss '{loss}' has no objectives: expected at least one in [components.sbert.loss.objectives]."
    NO_SUCH_OBJECTIVE = "The loss '{loss}' has no objective '{given}' ({where}): expected one of {expected}."
    OTHER_OBJECTIVES = (
        "The loss '{loss}' was saved with the objectives {saved}, but the config names {given}. Name them as they were "
        "saved."
    )
    NOT_A_LOSS = (
        "The loss '{loss}' is built of loss layers, such as spacy-sbert.CosineSimilarityLoss.v1, got {given}. Set "
        "@layers to one of them in {setting}."
    )
    NESTED_OBJECTIVES = (
        "The loss '{loss}' cannot hold '{given}', which has objectives of its own. Make '{given}' the outermost loss."
    )

    # Reading data
    NO_PATH = (
        "spacy-sbert.PairCorpus.v1 was given no path. Set it in the config, or on the command line: "
        "--paths.train pairs.spacy --paths.dev pairs.spacy."
    )
    NO_FILE = "There is no file {path}. Check [paths] in the config, or run 'python -m spacy project assets'."
    NOT_SPACY = "Cannot write pairs to {path}: expected a name that ends in .spacy."
    UNKNOWN_FORMAT = (
        "Cannot read {path}: its name does not tell its layout, as .spacy (made by 'python -m spacy sbert convert') or "
        ".csv and .tsv do (the STS benchmark's, or a table if `members` names its columns). Set format to one of "
        "{expected}."
    )
    BAD_FORMAT = "Unknown format '{given}': expected one of {expected}."
    UNUSED_COLUMNS = (
        "{path} is read as '{format}', which has fixed columns, but columns were named: {given}. Set format = "
        '"table", or leave members, score and label out.'
    )
    NO_MEMBER_COLUMNS = (
        "{path} is read as a table, but no columns of texts were named. Set members, such as "
        'members = ["question1", "question2"].'
    )
    UNKNOWN_TABLE = (
        "Cannot read {path} as a table: expected a name that ends in one of {expected}, all but .parquet also .gz."
    )
    NOT_A_NUMBER = (
        "{path} is read without a header, but a column was named '{given}': expected numbers counted from 0, such as "
        'members = ["1", "2"]. Set header = true to go by names.'
    )
    NO_PYARROW = "Reading {path} needs pyarrow. Install it: pip install 'spacy-sbert[parquet]'."
    BAD_RANGE = "Cannot scale scores from {low} to {high}: expected min_score below max_score."
    NO_PAIRS = "{path} holds no pairs: expected {expected}."
    MISSING_COLUMN = (
        "{path}, line {line}: expected 7 tab-separated columns (genre, file, year, id, score, sentence1, sentence2), "
        "got {given}. For a table with other columns, set format and members."
    )
    NO_COLUMN = "{path}, line {line}: expected a column '{column}', got {given}. Check the names and the format."
    SHORT_LINE = (
        "{path}, line {line}: no column '{column}', the line has only {given} columns. Repair or remove the line."
    )
    BAD_SCORE = (
        "{path}, line {line}: expected a score from {low:g} to {high:g}, got '{given}' in the column '{column}'. "
        "Repair the line, or set min_score and max_score for a table of another range."
    )
    NOT_BINARY = "{path}, line {line}: expected 0 or 1 in the column '{column}', got '{given}'. Repair the line."
    UNKNOWN_LABEL = "{path}, line {line}: unknown label '{given}', expected one of {expected}. Repair the line."
    NOT_A_TEXT = "{path}, line {line}: expected a text in the column '{column}', got {given!r}. Repair the line."
    EMPTY_SENTENCE = "{path}, line {line}: {column} is empty. Every column that is read needs text."
    EQUAL_MEMBERS = (
        "{path}, line {line}: the members {columns} of a triplet are equal, so there is nothing to tell apart. Remove "
        "the line."
    )
    BAD_ENCODING = "{path}, line {line}: not UTF-8 ({reason}). Convert the file to UTF-8."
    LONG_LINE = "{path}, line {line}: longer than {limit} bytes. Expected a text file with one example a line."
    BAD_GZIP = "{path}, line {line}: the compressed file is damaged ({reason}). Fetch it again."
    BAD_CSV = (
        "{path}, line {line}: not comma-separated as expected ({reason}). Check its quotes, or use .tsv or .jsonl."
    )
    BAD_JSON = "{path}, line {line}: expected a JSON object, got {reason}. Repair the line."
    BAD_PARQUET = "{path}, record {line}: cannot be read as .parquet ({reason}). Write the file again."
    BAD_DOCBIN = (
        "{path} cannot be read ({reason}): expected a .spacy file. Make it with 'python -m spacy sbert convert'."
    )
    BAD_EXAMPLE = "{path}, line {line}: {reason}"
    NO_TOKENS = (
        "The member number {number} of an example ('{given}') has no tokens, so it has no vector to learn from. Remove "
        "the example."
    )
    NO_MEMBERS = "An example was given no members: expected one text or more."
    WRONG_COUNT = "{path} holds {given} pairs, expected {expected}: the file is incomplete or another one."
    NOT_PAIRS = (
        "{path}: the Doc number {number} ('{text}') is no pair or other example: expected Spans with text in "
        "doc.spans['{key}'], and in its attrs, if they are there at all, a score from 0 to 1 and a label that is text. "
        "Make the file with 'python -m spacy sbert convert'."
    )
    NO_CORPORA = (
        "spacy-sbert.MultiCorpus.v1 was given no corpora: expected a reader for each name, such as "
        '[corpora.train.corpora.sts] @readers = "spacy-sbert.PairCorpus.v1".'
    )
    NOT_A_READER = (
        "The corpus '{name}' is no reader: got {given!r}, expected in corpora what a registered reader builds, such as "
        '@readers = "spacy-sbert.PairCorpus.v1" in its block.'
    )
    UNKNOWN_SAMPLING = "Unknown sampling '{given}': expected one of {expected}."
    UNUSED_WEIGHTS = 'Weights were given with sampling = "{sampling}", which has no use for them: set "proportional".'
    OTHER_WEIGHTS = "Weights were given for {given}, expected one for each of the corpora: {expected}."
    BAD_WEIGHT = "The weight of the corpus '{name}' is {given}: expected a finite number above zero."
    EMPTY_CORPUS = "The corpus '{name}' holds no examples. Check its path, or leave it out."
    NO_TEACHER_VECTOR = (
        "The teacher '{teacher}' has no vector for '{text}' (none, zero, or not finite), so there is nothing to learn. "
        "Use a pipeline whose doc.vector is set, such as one with an 'sbert' pipe, or remove the text."
    )
    NO_SCORES = (
        "The pipeline has no 'sbert' pipe that scores pairs; its pipes are {pipes}. Add one: nlp.add_pipe(\"sbert\")."
    )
    NOT_FINITE = (
        "A vector of the example '{text}' is not finite: training has diverged. Lower the learning rate or clip "
        "the gradient."
    )

    # Evaluation
    UNEQUAL_LENGTHS = "Cannot correlate arrays of shapes {predicted} and {gold}: expected two of shape (n,)."
    NOT_A_FINITE_NUMBER = (
        "Cannot correlate: {name} value {place} is {given}. Expected finite numbers: look for texts whose vectors are "
        "not finite."
    )
    UNKNOWN_SETTING = "Unknown value '{given}' among the {name} of the evaluation: expected some of {expected}."
    REPEATED_SETTING = "The {name} of the evaluation are '{given}': expected at least one, and none twice."
    UNKNOWN_SIZE = (
        "Unknown size '{given}': expected own, pca-D (D principal components) or up-D (random up-projection to D "
        "numbers, at most 65536), such as pca-128."
    )
    NO_SIZE_FITS = (
        "None of the sizes {sizes} can be had from {rows} vectors of width {width}: up-D needs D of at least the "
        "width, pca-D at most the smaller of the two. Add the size own, or another."
    )
    SIZE_TOO_SMALL = "Cannot up-project vectors of width {width} to size '{size}': expected at least up-{width}."
    SIZE_TOO_LARGE = (
        "Cannot take '{size}' of {rows} vectors of width {width}: there are no more components than the smaller of the "
        "two. Choose a smaller size."
    )
    MISSING_DATA = "{names} not found below {root}. Get it from {source}"
    NOT_OFFICIAL = (
        "{path}: {given} examples with a gold value, where the official data set has {official}. Get the whole file, "
        "or allow it (any_count, on the command line --any-count); the scores then compare with no published ones."
    )
    NO_DATA = "None of the data sets asked for is below {root}:\n{missing}"
    UNKNOWN_SUITE = "Unknown suite '{given}': expected some of {expected}."
    NO_FELLOW = "{path} is missing, while its fellow {fellow} is there: sentences and scores belong together."
    UNEQUAL_FILES = (
        "{path}, line {line}: the file ends before this line, while its fellow goes on. {given} has {lines} lines, "
        "{gold} has {scores}: expected one score, or a blank line, for each pair."
    )
    PIPELINE_WITHOUT_VECTORS = (
        "The pipeline {name} gives no vectors: doc.vector is empty. It has the pipes {pipes}: add one that sets "
        'doc.vector, such as nlp.add_pipe("sbert"), or static vectors.'
    )
    NOT_CLASSIFYING = (
        "The pipeline has no trained classification head: train an 'sbert' pipe with spacy-sbert.SoftmaxLoss.v1 "
        "(configs/nli.cfg) to have pairs labelled."
    )
    BAD_CACHE = "{path} is no saved vectors of an evaluation: {reason}. Delete it."
    UNREADABLE_RESULTS = (
        "{path} cannot be read as results of an evaluation: {reason}. Expected the JSON file that 'python -m spacy "
        "sbert evaluate --suite ... --output' saves."
    )
    LARGE_RESULTS = (
        "{path} has {given} bytes, more than results of an evaluation ever have ({limit}). Expected the JSON file that "
        "'python -m spacy sbert evaluate --suite ... --output' saves."
    )
    OTHER_FORMAT = (
        "{path} has the format {given}, expected '{expected}': it is no result of an evaluation, or of another version "
        "of this package. Evaluate the model again."
    )
    BAD_RESULTS = (
        "{path} is no result of an evaluation: {place} is {given}, expected {expected}. Evaluate the model again."
    )
    NOTHING_TO_COMPARE = "Cannot compare {given} results of evaluations: expected two or more."
    NO_TOPIC = (
        "{path}: the name of the file does not tell the topic. Expected ArgPairs_TOPIC.csv or ArgPairs_TOPIC_*.csv, as "
        "the AFS corpus has them, with one of {expected}."
    )
    WRONG_COLUMNS = (
        "{path}, line {line}: expected {expected} comma-separated columns, got {given}. Repair or remove the line: a "
        "comma outside of quotes begins another column."
    )
    NO_HEADER = "{path}, line {line}: expected the names of the columns, got '{given}'. Put the header back."
    NO_SKLEARN = "{task} needs scikit-learn. Install it: pip install 'spacy-sbert[evaluation]'."
    ONE_CLASS = (
        "{task}: all training examples have the label '{given}', so there is nothing to tell apart. Check the "
        "files, or get them again."
    )
    FEW_EXAMPLES = (
        "{task}: {given} training examples have the label '{label}', expected at least {expected}: one for each fold. "
        "Check the files, or get them again."
    )

    # Baselines, speed and mteb
    UNKNOWN_BASELINE = "Unknown baseline '{given}': expected one of {expected}."
    BASELINE_NEEDS = "The baseline '{name}' needs {needs}."
    NEEDS_VECTORS = "a pipeline with static vectors (nlp), such as en_core_web_md"
    NEEDS_COUNTS = (
        "word counts (counts): a file with a word and its count on each line, such as enwiki_vocab_min200.txt of "
        "https://github.com/PrincetonML/SIF"
    )
    NO_STATIC_VECTORS = (
        "The pipeline {name} has no static vectors, which this baseline is made of. Use one that has, such as "
        "en_core_web_md, or 'python -m spacy init vectors' to make one of a file of word vectors."
    )
    BAD_POWER = "Cannot take the power mean with p = {given}: expected whole numbers above 0, -inf and inf."
    BAD_WORD_COUNT = (
        "{path}, line {line}: expected a word, white space and how often it was counted (1 or more), got '{given}'. "
        "Repair or remove the line."
    )
    REPEATED_WORD = "{path}, line {line}: the word '{word}' was counted before. Keep one line for each word."
    NO_WORD_COUNTS = "{path} holds no word counts: expected a word and its count on each line."
    NO_PIPELINE_TO_TIME = (
        "Only pipelines are timed: a baseline is no pipeline that is used as it is. Leave the suite 'speed' out."
    )
    NO_MTEB = "The adapter for mteb needs mteb 2. Install it: pip install 'spacy-sbert[mteb]'."
    NOT_TEXT_INPUT = (
        "The task '{task}' gave a batch with {given}, but no text: a pipeline encodes texts alone. Choose tasks whose "
        "modality is text."
    )

    # Search
    NOT_ROWS = (
        "Cannot search {name} of shape {given}: expected a float array of shape (n, width), a vector a row, such as "
        "numpy.stack([doc.vector for doc in docs])."
    )
    ROW_NOT_FINITE = (
        "Row {row} of the {name} is not finite: it has NaN or infinity, which is similar to nothing. Leave it out, or "
        "look for why the pipeline gives such a vector."
    )
    BAD_COUNT = (
        "Cannot find {given} {what}: expected a whole number, at least 1 and at most {most}, as {name}. Ask for fewer, "
        "or give more vectors."
    )
    UNKNOWN_LINKAGE = "Unknown linkage '{given}': expected one of {expected}."
    CLUSTERS_OR_THRESHOLD = (
        "Cannot cluster with n_clusters = {n_clusters} and threshold = {threshold}: expected exactly one of them."
    )
    BAD_THRESHOLD = (
        "Cannot merge clusters up to the distance threshold = {given}: expected a cosine distance from 0 to 2."
    )


class Warnings:
    """Messages of warnings."""

    ARRIVED = (
        "Docs with sentence vectors were read from bytes, a DocBin or another process (n_process), without their "
        "hooks: until spacy_sbert.restore(doc) is called, doc.vector and similarity are spaCy's defaults, such as the "
        "mean of doc.tensor or of static vectors. Call it for each Doc, or for all: spacy_sbert.restore(docs)."
    )
    JOINED = (
        "Docs with sentence vectors were joined by Doc.from_docs, without their hooks: until spacy_sbert.restore(doc) "
        "is called, doc.vector and similarity are spaCy's defaults, such as the mean of doc.tensor or of static "
        "vectors."
    )
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
    POOLED_IN_CONTEXT = (
        "The vector of a Span was pooled from its wordpieces in the context of its Doc: Spans of one Doc look alike, "
        "whatever they say. For what a Span says by itself, take nlp(span.text).vector; sentences are encoded by "
        'themselves with [components.{name}.model.get_spans] unit = "doc+sent" (of the component "transformer" where '
        "that is shared) and sentence boundaries set before the encoder. The pipe '{name}' says this once."
    )
    BEHIND_LIMIT = (
        "A Span or Token lies wholly or partly behind the encoder's limit, where its Doc was cut: it has no vector, or "
        'that of its beginning alone. Set overflow = "windows" in the encoder\'s config; sentences are encoded by '
        "themselves with unit = \"doc+sent\". The pipe '{name}' says this once."
    )
    META_LEFT_OUT = "{count} sentences of {limit} tokens or more were left out; set max_tokens to take longer ones."
    META_FEWER_DIRECTIONS = (
        "By the method '{method}' the members of '{name}' have {size} directions to give, fewer than the {widest} of "
        "the widest member: its vectors are {size} wide. Set size for narrower ones."
    )
    SHARED_DEFAULT_PROMPT = (
        "The authors of '{name}' put the prompt '{prompt}' before texts, which a shared transformer cannot do: vectors "
        "differ from theirs. Use spacy-sbert.SentenceEncoder.v1, which has an encoder of its own."
    )
    EXPORT_WINDOWS = (
        "The pipe '{name}' averages over windows of long texts (overflow = \"windows\"), which sentence-transformers "
        "cannot: it will cut texts at {limit} wordpieces."
    )
    TRAINING_CUT = "While training the 'sbert' pipe '{name}': in this batch, and maybe in later ones, "
    OTHER_POOLING = (
        "The encoder '{name}' was made for {expected} pooling, this pipeline uses {given} pooling: vectors differ from "
        'those its authors publish. Set pooling = "{expected}" unless that is what you want.'
    )
    PART_OF_BATCH = (
        "The loss '{loss}' compares all examples of a batch with one another, but training.accumulate_gradient shows "
        "it the batch in parts: the step is not that of the whole batch. Set accumulate_gradient = 1, and for batches "
        "larger than memory use mini_batch_size in the encoder's config, or "
        "spacy-sbert.CachedMultipleNegativesRankingLoss.v1."
    )
    UNKNOWN_BATCH = (
        "training.accumulate_gradient splits batches, and the 'sbert' pipe '{name}' is not told of the size of the "
        "whole: its mean losses are added up, not averaged, and the step is larger than that of the whole batch. Set "
        '[training.batcher] @batchers = "spacy-sbert.batch_by_objective.v1", or "spacy-sbert.batch_mixed.v1".'
    )
    RERANKER_TRUNCATED = (
        "{count} of {total} pairs were longer than the cross-encoder's limit of {limit} wordpieces; of these the "
        "longer text was cut. Score shorter texts, such as sentences or paragraphs."
    )
    RERANKER_TRAINING_CUT = (
        "While training '{name}': in this batch, and maybe in later ones, pairs were longer than the limit of {limit} "
        "wordpieces; of these the longer text was cut."
    )
    RERANKER_NEW_HEAD = (
        "The cross-encoder of '{name}' has a new head, drawn at random: its scores mean nothing before it is trained "
        "(configs/reranker.cfg). To use one that is trained, set its name in the config of the model."
    )
    RERANKER_NOTHING_TO_LEARN = (
        "'{name}' got a training batch without pairs and learned nothing from it: expected Docs with two members in "
        "doc.spans['{key}'], as spacy-sbert.PairCorpus.v1 reads them."
    )
    NOTHING_TO_LEARN = (
        "The 'sbert' pipe '{name}' got a training batch without pairs and learned nothing from it: expected Docs with "
        "their members in doc.spans['{key}']. spaCy's own Corpus drops them; use spacy-sbert.PairCorpus.v1 as reader."
    )
