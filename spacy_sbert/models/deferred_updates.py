"""Updates of a shared encoder, deferred until all listeners have returned their gradients."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import torch
from thinc.api import Optimizer, PyTorchShim

from .engine.concurrency import EncoderUse, TrainingStep

Backward = Callable[[list[torch.Tensor]], None]  # adds to the gradients of the parameters


class DeferringShim(PyTorchShim):
    """Carries out a step of training in order: forward pass, gradient, update.

    `nlp.update(examples, sgd=optimizer)` has a shared transformer finish its update before the last of its listeners
    hands back the gradient. Such an update is kept until the gradient is there: the step is then that of `spacy train`,
    which finishes updates after all have called back. Where none ever comes (a listener that does not call back, an
    error) it is made before the next forward pass, with what gradient there is.

    use (EncoderUse): of the threads. The update itself, `_update`, is that of a subclass.
    """

    use: EncoderUse
    _deferred: list[Optimizer]

    def finish_update(self, optimizer: Optimizer) -> None:
        """Update the weights: now, or when the gradient of the last forward pass has come.

        RAISES (RuntimeError): if another thread trains the encoder.
        """
        if self._model is None:  # not loaded yet
            return
        self.use.check_trainer()
        self._deferred.append(optimizer)
        if self.use.step is None:
            self._make_updates()

    def _update(self, optimizer: Optimizer) -> None:
        super().finish_update(optimizer)

    @contextmanager
    def _begin_step(self) -> Iterator[TrainingStep]:
        """Run a forward pass of training in a with block; what it yields is for _end_step.

        RAISES (RuntimeError): if another thread trains the encoder.
        """
        step = self.use.begin_step()
        with self.use.changing():
            self._make_updates()
            self._model.train()
            yield step

    def _end_step(self, step: TrainingStep, backward: Backward, d_outputs: list[torch.Tensor]) -> None:
        """Take gradients back to the parameters, and make the updates that waited for them."""
        with self.use.changing():
            self._model.train()  # what was not kept is computed again, and it may have encoded meanwhile
            self._backward_scaled(backward, d_outputs)
        self.use.end_step(step)
        if self.use.step is None:
            self._make_updates()

    def _make_updates(self) -> None:
        """Make the updates that waited, unless another thread still does what they wait for."""
        while self._deferred and not self.use.is_trained_elsewhere:
            with self.use.changing():
                self._update(self._deferred.pop(0))

    def _backward_scaled(self, backward: Backward, d_outputs: list[torch.Tensor]) -> None:
        scaled = cast(list[torch.Tensor], self._grad_scaler.scale(d_outputs, inplace=True))
        # What earlier parts of an accumulated batch left is unscaled already, and will be once more.
        self._grad_scaler.scale(self._gradients(), inplace=True)
        backward(scaled)
        self._grad_scaler.unscale(self._gradients())

    def _gradients(self) -> list[torch.Tensor]:
        return [parameter.grad for parameter in self._model.parameters() if parameter.grad is not None]
