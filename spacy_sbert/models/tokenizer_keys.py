"""Keys of a tokenizer's files and of the setting tokenizer_config: what becomes of each."""

from __future__ import annotations

# Read by Transformers when it makes the tokenizer, of which wordpieces are copied: as in
# sentence-transformers.
FOLLOWED = frozenset(
    {
        # Which class, and from which file
        *(
            "auto_map",
            "from_slow",
            "gguf_file",
            "merges",
            "merges_file",
            "spm_file",
            "tokenizer_class",
        ),
        *(
            "tokenizer_file",
            "tokenizer_object",
            "tokenizer_type",
            "use_fast",
            "vocab",
            "vocab_file",
            "backend",
        ),
        # Tokens
        *(
            "added_tokens_decoder",
            "additional_special_tokens",
            "extra_ids",
            "extra_special_tokens",
            "offset",
        ),
        *(
            "bos_token",
            "cls_token",
            "eos_token",
            "mask_token",
            "pad_token",
            "sep_token",
            "unk_token",
            "unk_id",
        ),
        *(
            "bod_token",
            "chain_break_token",
            "empty_token",
            "eod_token",
            "eot_token",
            "fill_token",
            "line_token",
        ),
        *(
            "mask_token_sent",
            "middle_token",
            "model_specific_special_tokens",
            "phone_delimiter_token",
        ),
        *(
            "prefix_token",
            "question_token",
            "space_token",
            "suffix_token",
            "word_delimiter_token",
            "x_sep_token",
        ),
        *("image_token", "audio_token", "video_token", "sot_token"),
        # How a text is normalized and split
        *(
            "_spm_precompiled_charsmap",
            "add_prefix_space",
            "clean_text",
            "do_basic_tokenize",
            "do_clean_text",
        ),
        *(
            "do_lower_case",
            "do_lowercase",
            "do_lowercase_and_remove_accent",
            "do_normalize",
            "do_phonemize",
        ),
        *(
            "do_subword_tokenize",
            "do_word_tokenize",
            "emoji_file",
            "fix_mistral_regex",
            "is_uroman",
            "jumanpp_kwargs",
        ),
        *(
            "keep_accents",
            "legacy",
            "legacy_behaviour",
            "mecab_kwargs",
            "monolingual_vocab_file",
            "never_split",
        ),
        *(
            "normalization",
            "normalize",
            "normalizer_file",
            "phonemize",
            "phonemizer_backend",
            "phonemizer_lang",
        ),
        *(
            "remove_space",
            "replace_word_delimiter_char",
            "should_strip_spaces",
            "sp_model_kwargs",
            "split_by_punct",
        ),
        *(
            "split_special_tokens",
            "strip_accents",
            "subword_tokenizer_type",
            "sudachi_kwargs",
            "add_blank",
        ),
        *(
            "tokenize_chinese_chars",
            "word_tokenizer_type",
            "wordpieces_prefix",
            "_patch_mistral_regex",
        ),
        # What is put around it
        *(
            "add_bos_token",
            "add_eos_token",
            "id2lang",
            "lang2id",
            "langs",
            "language",
            "language_codes",
        ),
        *(
            "predict_timestamps",
            "src_lang",
            "src_vocab_file",
            "target_lang",
            "task",
            "tgt_lang",
            "tgt_vocab_file",
        ),
        # Limits, and what an encoder gets
        *(
            "max_len",
            "model_max_length",
            "model_input_names",
            "return_token_type_ids",
            "truncation_side",
        ),
        *("token_type_ids_pattern", "padding_side", "chat_template"),
    }
)

_CALL = "an argument of the tokenizer's call, which sentence-transformers makes without it"
_DECODING = "only for making texts of wordpieces"
_PLACES = "for tables, pages and entities, which no text has"
_HUB = "where the tokenizer was downloaded from"
_NAME = "a name"
# Key -> why it has no effect on vectors, here and in sentence-transformers.
WITHOUT_EFFECT = {
    **dict.fromkeys(
        ("max_length", "stride", "truncation", "truncation_strategy", "padding", "return_tensors"),
        _CALL,
    ),
    **dict.fromkeys(
        ("pad_to_multiple_of", "return_attention_mask", "return_special_tokens_mask"), _CALL
    ),
    **dict.fromkeys(
        ("is_split_into_words", "add_special_tokens", "verbose", "return_offsets_mapping"), _CALL
    ),
    **dict.fromkeys(
        ("clean_up_tokenization_spaces", "errors", "spaces_between_special_tokens"), _DECODING
    ),
    **dict.fromkeys(
        ("skip_special_tokens", "trim_offsets", "use_default_system_prompt"), _DECODING
    ),
    **dict.fromkeys(
        ("cell_trim_length", "cls_token_box", "max_column_id", "max_depth", "max_row_id"), _PLACES
    ),
    **dict.fromkeys(
        ("max_question_length", "max_width", "min_question_length", "pad_token_box"), _PLACES
    ),
    **dict.fromkeys(
        ("only_label_first_subword", "pad_token_label", "pad_width", "sep_token_box"), _PLACES
    ),
    **dict.fromkeys(
        ("drop_rows_to_fit", "strip_column_names", "tags_dict", "update_answer_coordinates"),
        _PLACES,
    ),
    **dict.fromkeys(
        ("entity_1_token", "entity_2_token", "entity_token_1", "entity_token_2"), _PLACES
    ),
    **dict.fromkeys(
        ("entity_mask_token", "entity_mask2_token", "entity_pad_token", "entity_unk_token"), _PLACES
    ),
    **dict.fromkeys(
        ("entity_vocab", "entity_vocab_file", "max_entity_length", "max_mention_length"), _PLACES
    ),
    **dict.fromkeys(
        ("word_pronunciation_file", "word_shape_file"), "an encoder that reads them is refused"
    ),
    **dict.fromkeys(
        ("_commit_hash", "cache_dir", "force_download", "local_files_only", "proxies"), _HUB
    ),
    **dict.fromkeys(
        ("resume_download", "revision", "token", "use_auth_token", "device_map", "_from_auto"), _HUB
    ),
    **dict.fromkeys(
        ("name_or_path", "processor_class", "special_tokens_map_file", "tokenizer_name"), _NAME
    ),
    **dict.fromkeys(
        ("slow_tokenizer_class", "fast_tokenizer_class", "is_local", "transformers_version"), _NAME
    ),
    "pad_token_type_id": "the type of padding, which is masked",
}

# Keys of the setting tokenizer_config that are refused, and what to do.
REFUSED = {
    "subfolder": "a saved pipeline could not read it; save the tokenizer beside the weights",
}
