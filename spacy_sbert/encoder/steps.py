"""When a step of training may change the weights: never between a forward pass and the gradient of it."""

import threading
import weakref
from dataclasses import dataclass, field

from thinc.api import Optimizer

from .errors import Errors


@dataclass(eq=False)
class Awaited:
    """A forward pass of training whose gradient has not come yet. Its callback holds it: without that, none can come.

    thread: that trains.
    """

    thread: threading.Thread = field(default_factory=threading.current_thread)


class Steps:
    """Keeps the updates that are asked for too early.

    `nlp.update(examples, sgd=optimizer)` has a shared transformer finish its update before the last of its listeners
    hands back the gradient. Such an update is kept until the gradient is there: the step is then that of `spacy train`,
    which finishes updates after all have called back. Where none ever comes (a listener that does not call back, an
    error) it is made before the next forward pass, with what gradient there is.
    """

    def __init__(self) -> None:
        self._awaited: weakref.ref[Awaited] | None = None
        self._kept: list[Optimizer] = []
        self._lock = threading.RLock()  # two threads that begin at one moment must not both go on

    def __reduce__(self) -> tuple[type, tuple]:
        return Steps, ()  # a copy trains by itself

    def begin(self) -> Awaited:
        """Note a forward pass; the callback that takes its gradient is to hold what is returned.

        RAISES (RuntimeError): if another thread is amid a step.
        """
        with self._lock:
            self.check_thread()
            awaited = Awaited()
            self._awaited = weakref.ref(awaited)
            return awaited

    def end(self, awaited: Awaited) -> None:
        """Note that its gradient has come."""
        if self._current is awaited:
            self._awaited = None

    def keep(self, optimizer: Optimizer) -> None:
        """Note an update that is to be made by this optimizer."""
        self._kept.append(optimizer)

    def take(self) -> list[Optimizer]:
        """The updates that are to be made now, in order."""
        with self._lock:
            kept, self._kept = self._kept, []
            return kept

    @property
    def awaits_gradient(self) -> bool:
        """Whether the latest forward pass may get its gradient yet."""
        return self._current is not None

    @property
    def is_of_another_thread(self) -> bool:
        """Whether another thread awaits the gradient of the latest forward pass."""
        awaited = self._current
        return awaited is not None and awaited.thread is not threading.current_thread() and awaited.thread.is_alive()

    def check_thread(self) -> None:
        """Refuse to train, or to change weights, while another thread is amid a step.

        RAISES (RuntimeError): if it awaits a gradient.
        """
        awaited = self._current
        if awaited is not None and self.is_of_another_thread:
            raise RuntimeError(Errors.TRAINED_BY_TWO_THREADS.format(other=awaited.thread.name))

    @property
    def _current(self) -> Awaited | None:
        return None if self._awaited is None else self._awaited()
