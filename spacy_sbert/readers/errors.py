"""What is said of data sets."""

from .. import errors


class Errors(errors.Errors):
    NO_PATH = (
        "spacy-sbert.PairCorpus.v1 was given no path. Set it in the config, or on the command line: "
        "--paths.train pairs.spacy --paths.dev pairs.spacy."
    )
    NO_FILE = (
        "There is no file {path}. Check the path, or [paths] in the config; data sets of this project come with "
        "'python -m spacy project assets'."
    )
    NOT_SPACY = "Cannot write pairs to {path}: expected a name that ends in .spacy."
    UNKNOWN_FORMAT = (
        "Cannot read {path}: its name does not tell its layout, as .spacy (made by 'python -m spacy sbert convert') or "
        ".csv and .tsv do (the STS benchmark's, or a table if `members` names its columns). Set format to one of "
        "{expected}."
    )
    BAD_FORMAT = "Unknown format '{given}': expected one of {expected}."
    UNUSED_COLUMNS = (
        "{path} is read as '{format}', which has fixed columns and scores, but these are set for a table: {given}. Set "
        'format = "table", or leave them out.'
    )
    NO_MEMBER_COLUMNS = (
        "{path} is read as a table, but no columns of texts were named. Set members, such as "
        'members = ["question1", "question2"].'
    )
    BAD_RANGE = "Cannot scale scores from {low} to {high}: expected min_score below max_score."
    MISSING_COLUMN = (
        "{path}, line {line}: expected 7 tab-separated columns (genre, file, year, id, score, sentence1, sentence2), "
        "got {given}. For a table with other columns, set format and members, or have 'python -m spacy sbert "
        "init-config' make a config."
    )
    STS_HEADER = (
        "{path}, line {line}: the layout of the STS benchmark has no header, got '{given}'. Leave --format out, or "
        "give --format table: columns are then found by their names."
    )
    NOT_BINARY = "{path}, line {line}: expected 0 or 1 in the column '{column}', got '{given}'. Repair the line."
    TABLE_NO_PAIR = (
        "Cannot tell which columns of {path} are the texts: those of several words are {given}, of {columns}. Name "
        "two, or three of triplets: --members first,second. Of a text and its class name both: --members text --label "
        "category."
    )
    TABLE_MANY_GOLD = (
        "Cannot tell which column of {path} is the gold: numbers are in {scores}; labels in {labels}. Name one: "
        "{options}."
    )
    TABLE_FAR_GOLD = (
        "By its name the column '{column}' of {path} is larger the less alike texts are, so it is no score. Leave it "
        "out with {alone}, or give {gold} if larger is more alike."
    )
    TABLE_AMBIGUOUS = "{path} can be read in {count} ways. Give the options of the right one:\n{readings}"
    TABLE_NESTED = (
        "{path}, line {line}: the field '{column}' holds a list or an object, which is not read. Write a row for each "
        "of its texts, or name the columns of the texts without it: --members first,second."
    )
    TABLE_BAD_LINES = "{path} has lines with {count} kinds of faults:\n{said}"
    TABLE_NOT_A_NUMBER = (
        "{path}, line {line}: expected a number in the column of scores '{column}', got '{given}' ({count} of its "
        "{all} cells are no numbers: {lines}). Repair or remove the line; write decimals with a point. If '{column}' "
        "holds no scores, name what does: --score COLUMN or --label COLUMN."
    )
    TABLE_OUTLIER = (
        "{path}, line {line}: the score {given:g} in the column '{column}' is not in the range of the others: {count} "
        "of {all} are outside of {low:g} to {high:g} ({lines}), and all would be scaled from {whole_low:g} to "
        "{whole_high:g}. Repair the line, to {end:g} if it is just beyond that end; if it is right, give the range: "
        "--min-score {whole_low:g} --max-score {whole_high:g}."
    )
    MISSING_LABELS = (
        "{path}: values of the column '{column}' mark rows without a label ({given}), and would be learned as labels. "
        "Set missing = {setting} in [{block}], or missing = [] if they are labels."
    )
    TABLE_NO_GOLD = (
        "{path}: the column '{column}' has no gold in any of {count} rows: all are blank or '-'. Fill it, or name the "
        "columns to read without it: --members first,second."
    )
    TABLE_EMPTY = "{path} holds no examples. Give a table with a row for each."
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
        "{path}: the Doc number {number} ('{text}') is not a pair or another example: expected Spans with text in "
        "doc.spans['{key}'], and in its attrs, if they are there at all, a score from 0 to 1 and a label that is text. "
        "Make the file with 'python -m spacy sbert convert'."
    )
    NO_CORPORA = (
        "spacy-sbert.MultiCorpus.v1 was given no corpora: expected a reader for each name, such as "
        '[corpora.train.corpora.sts] @readers = "spacy-sbert.PairCorpus.v1".'
    )
    NOT_A_READER = (
        "The corpus '{name}' is not a reader: got {given!r}, expected in corpora what a registered reader builds, such "
        'as @readers = "spacy-sbert.PairCorpus.v1" in its block.'
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
    NO_TOPIC = (
        "{path}: the name of the file does not tell the topic. Expected ArgPairs_TOPIC.csv or ArgPairs_TOPIC_*.csv, as "
        "the AFS corpus has them, with one of {expected}."
    )
    WRONG_COLUMNS = (
        "{path}, line {line}: expected {expected} comma-separated columns, got {given}. Repair or remove the line: a "
        "comma outside of quotes begins another column."
    )
    NO_HEADER = "{path}, line {line}: expected the names of the columns, got '{given}'. Put the header back."
    BAD_SCORE = (
        "{path}, line {line}: expected a score from {low:g} to {high:g}, got '{given}' in the column '{column}'. "
        "Repair the line, or set min_score and max_score for a table of another range: options of a command that has "
        "them (--max-score 5), or settings of the config's corpus (--corpora.train.max_score 5 of train)."
    )
    EQUAL_MEMBERS = (
        "{path}, line {line}: the members {columns} of a triplet are equal, so there is nothing to tell apart. Remove "
        "the line."
    )


class Warnings(errors.Warnings):
    TORN_RECORDS = (
        "{path}: left out records that do not have {expected} columns ({lines}). A line break or a tab in a question "
        "splits them: quote the question, or join the lines."
    )
