"""What is said of encoders and their folders."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    HELD_SHIM = "The node 'hf-pytorch' holds the weights of a transformer. Call the transformer, which it is part of."
    NO_SPACY_TRANSFORMERS = (
        "{needed_by} needs the package spacy-transformers, which is not installed. Install it with pip install "
        '"spacy-sbert[transformers]", or use spacy-sbert.SentenceEncoder.v1, whose transformer is its own.'
    )
    OTHER_BATCH = (
        "The transformer (upstream = '{name}') handed out the output of another batch of Docs. Put it directly into "
        "the pipeline that is trained, before the sentence encoder."
    )
    NO_TOK2VEC_OUTPUT = (
        "The Doc '{text}' carries no output of a 'tok2vec' component (doc.tensor is empty), to which the sentence "
        "encoder listens. Process it with the whole pipeline: nlp(text), with 'tok2vec' before the encoder and enabled."
    )
    TOK2VEC_OUTPUT_WIDTH = (
        "The 'tok2vec' component of the pipeline gave vectors of {given} numbers (doc.tensor), the sentence encoder "
        "listens for {expected}: set the width of spacy.Tok2VecListener.v1 in its config to {given}."
    )
    CURATED_OUTPUT_WIDTH = (
        "The 'curated_transformer' of the pipeline gave vectors of {given} numbers, the sentence encoder listens for "
        "{expected}: set the width of the listener in its config (tok2vec) to {given}."
    )
    CURATED_NOT_TRAINED = (
        "The listener of the sentence encoder got nothing from a 'curated_transformer' in training: it is disabled, or "
        "in training.frozen_components, where listeners of spacy-curated-transformers do not hear it. To keep its "
        "weights set frozen = true in its own block, [components.transformer], and take it out of frozen_components, "
        "or use spacy-sbert.SharedSentenceEncoder.v1."
    )
    ALL_LAYERS_SHARED = (
        "Cannot pool wordpieces with the listener '{given}', which hears all layers of a 'curated_transformer': "
        "expected spacy-sbert.SentenceListener.v1 or spacy-curated-transformers.LastTransformerLayerListener.v1 as "
        "tok2vec of spacy-sbert.SharedSentenceEncoder.v1. spacy-sbert.Tok2VecSentenceEncoder.v1 takes "
        "spacy-curated-transformers.ScalarWeightingListener.v1, and pools tokens."
    )
    MANY_LAYERS = (
        "Cannot pool tokens with the listener '{given}', which gives a vector of each layer: expected "
        "spacy-curated-transformers.LastTransformerLayerListener.v1 or "
        "spacy-curated-transformers.ScalarWeightingListener.v1 as tok2vec of spacy-sbert.Tok2VecSentenceEncoder.v1."
    )
    UNKNOWN_OUTPUT = (
        "The transformer left {given} on the Doc '{text}' (doc._.trf_data), which the sentence encoder cannot read: "
        "expected the output of the 'transformer' or 'curated_transformer' that it listens to. Let no other component "
        "stand between them that leaves something there."
    )
    UNKNOWN_PROMPT = (
        "The encoder has no prompt '{given}', those it has are {expected}. Name it in the encoder's "
        "config, prompts = "
        '{{"{given}": "..."}}, or give the text itself as prompt in place of prompt_name.'
    )
    PROMPT_NOT_SAVED = (
        "Cannot save the prompt {name!r} = {given!r} in a config: expected a name without ':', '=' and line "
        "breaks, nor '#', ';', '[' or white space at its ends, and a text without '${{', which begins a variable. "
        "Give such a prompt with each call, encode(texts, prompt=...)."
    )
    DEFAULT_PROMPT_NOT_SAVED = (
        "Cannot save default_prompt_name = {given!r} in a config, where '${{' begins a variable. Rename the prompt, or "
        "give its name with each call, encode(texts, prompt_name=...)."
    )
    PROMPT_WINDOWS = (
        'include_prompt = false and overflow = "windows" do not go together: only the first window of a text begins '
        'with the prompt. Set overflow = "truncate".'
    )
    FLOAT16_ON_CPU = (
        'precision = "float16" needs a GPU, and the CPU is in use: set precision = "bfloat16" or "float32", or run on '
        "a GPU (--gpu-id 0)."
    )
    NOTHING_FROZEN = "Cannot freeze '{given}': the transformer has no such parameter or module. It has {expected}."
    BAD_FOLDER_FILE = "Cannot read {file}, a part of the encoder's folder: {reason}. Get the encoder anew."
    UNSAFE_PATH = "The file {file} names '{path}', which lies outside of its folder. Use an encoder that you trust."
    ENCODER_NOT_FOUND = (
        "The encoder '{name}' was found in none of the four places that are searched:\n"
        "  1. a local folder: {folder}\n"
        "  2. the Hugging Face cache: {cache}\n"
        "  3. an installed package: {package}\n"
        "  4. the Hugging Face hub: {hub}\n"
        "{near}Check the name, or give a folder that holds the encoder, or download it once while online"
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
    NOT_ROUNDED = (
        "An encoder of class {given} is not calibrated: int8 is for the linear layers of BERT, RoBERTa, XLM-RoBERTa, "
        "CamemBERT, ELECTRA, DistilBERT and MPNet, without adapters. Others encode as with precision = 'auto'."
    )
    SAVED_OTHER_NAME = (
        "The saved transformer is '{saved}', and its config names '{given}', which would be ignored. Leave the name as "
        "it was saved; to use another encoder, make a new pipe with nlp.add_pipe."
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
    FOREIGN_MODULE = "The folder {folder} has the module {given}, which is unknown here: it is {kind}. {remedy}"
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
    SETTING_NOT_HONOURED = (
        "{file} asks for {setting} = {given}, which transformers {installed} ignores: its vectors would be others. "
        "Install {versions}."
    )
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
    NO_TRANSFORMER_OUTPUT = (
        "The shared transformer has not processed this Doc ('{text}'), so there is nothing to pool: it is disabled, "
        "excluded, or stands after the 'sbert' pipe. Enable it (nlp.enable_pipe(\"transformer\")), put it first, and "
        "while training with a frozen transformer list it in [training.annotating_components]."
    )
    TABLE_WIDTH = (
        "The table of '{name}' has vectors of {given} numbers, and the static encoder was configured for {expected}: "
        "set width = {given} in spacy-sbert.StaticSentenceEncoder.v1."
    )
    STATIC_FOLDER = (
        "The folder {folder} holds a static encoder, a table without a transformer: use "
        "spacy-sbert.StaticSentenceEncoder.v1, or python -m spacy sbert import {folder} OUT."
    )
    NO_TABLE = (
        "The static encoder has no table yet: '{name}' is a transformer, of which it takes the tokenizer alone. Draw a "
        "table with nlp.initialize() and train it, or make one of a teacher: python -m spacy sbert distill-static "
        "TEACHER OUT --vocabulary texts.txt."
    )
    STATIC_PROMPT = (
        "The static encoder {name} puts the prompt '{given}' before every text by default "
        "(config_sentence_transformers.json), and a table of wordpieces takes no prompts: set default_prompt_name to "
        "null there, and put the prompt before your texts."
    )
    NO_STATIC_FILE = "The static encoder in {folder} has no {missing}: get it anew, or save it with safetensors."
    BAD_TABLE = (
        "The file model.safetensors in {folder} holds {given}: expected one table of finite numbers, embedding.weight "
        "or embeddings, of {expected}. Get the encoder anew; one that is quantised by its vocabulary must be made "
        "without that."
    )


class Warnings(errors.Warnings):
    """Of warnings and the log."""

    UNKNOWN_SETTINGS = (
        "{file} was written by transformers {written} and has settings that {installed} does not know: {names}. The "
        "vectors may be others; install transformers {written} or later."
    )
    SLOW_BFLOAT16 = (
        'precision = "bfloat16" is several times slower than "float32" on this CPU, which has no arithmetic for it '
        '(AVX-512 BF16 or AMX). Set precision = "auto", which chooses by the device.'
    )
    ENCODER_MISSING = (
        "The encoder '{name}' of the pipe '{pipe}' cannot be found: {reason}. {near}Correct the name, or the first "
        "text fails; nlp.initialize() and the pipe's load() tell where it was looked for."
    )
