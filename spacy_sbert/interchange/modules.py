"""Names in a sentence-transformers folder, and what they are called here."""

from ..encoder.modules import PACKAGE

ACTIVATIONS = {  # of Dense, in its config.json, and here
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.linear.Identity": "identity",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
}
# In the layout that every version and every server reads, not only the latest.
SHARED_FILE = "config_sentence_transformers.json"
LIMITS_FILE = "sentence_bert_config.json"


def module_type(name: str) -> str:
    """The type of a module in modules.json."""
    return f"{PACKAGE}.models.{name}"
