"""How the commands load a pipeline: one convention for all of them."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from .ending import fail, or_fail, use_gpu
from .errors import Errors
from .options import Code, Gpu, Pipe, Quiet

if TYPE_CHECKING:
    from spacy.language import Language

PACKAGED = ("all-MiniLM-L6-v2",)  # encoders that packages carry


@dataclass(frozen=True)
class Loading:
    """Which pipe of the pipeline a command uses, and the code it needs."""

    pipe: Pipe = None
    code: Code = None
    quiet: Quiet = False

    @property
    def shown(self) -> bool:
        """Whether to show progress bars."""
        return not self.quiet

    def import_code(self) -> None:
        """Import the code that a pipeline needs."""
        from spacy.cli._util import import_code

        import_code(self.code)

    def prepare(self) -> None:
        """Do what has to be done before the pipeline is loaded."""
        self.import_code()

    def load(self, pipeline: str) -> "Language":
        """Load a folder, an installed package or an encoder by its name; errors end the command."""
        from ..errors.progress import ticking

        self.prepare()
        with or_fail(f"Cannot load {pipeline}", RuntimeError), ticking("Loading", shown=self.shown):
            from ..bulk.pipe import load_pipeline

            return load_pipeline(pipeline, self.pipe)

    def load_answering(self, pipeline: str, *, also_scores: bool = False) -> "Language":
        """Load a pipeline whose Docs answer with the vectors of --pipe, see answer_with."""
        nlp = self.load(pipeline)
        if self.pipe is not None:
            from ..bulk.pipe import answer_with

            with or_fail(f"Cannot use {pipeline}"):
                answer_with(nlp, self.pipe, also_scores=also_scores)
        return nlp


@dataclass(frozen=True)
class Computing(Loading):
    """The same for a command that encodes texts."""

    gpu_id: Gpu = -1

    def prepare(self) -> None:
        """Do what has to be done before the pipeline is loaded: choose the GPU, too."""
        use_gpu(self.gpu_id)
        super().prepare()


def check_pipeline(pipeline: str) -> None:
    """End the command, before anything heavy is imported, if no pipeline or encoder has a name like this."""
    from spacy import errors
    from spacy.util import get_installed_models, is_package

    if pipeline.startswith("blank:") or is_package(pipeline) or Path(pipeline).exists():
        return
    from huggingface_hub.constants import HF_HUB_CACHE

    cached = [folder.name.rpartition("--")[2] for folder in Path(HF_HUB_CACHE).glob("models--*")]
    names = [name.lower() for name in (*PACKAGED, *cached, *get_installed_models())]
    if not get_close_matches(Path(pipeline).name.lower(), names, n=1, cutoff=0.7):  # else load_pipeline finds out
        reason = errors.Errors.E050.format(name=pipeline)
        fail(f"Cannot load {pipeline}", Errors.BULK_NO_PIPELINE.format(given=pipeline, near="", reason=reason))
