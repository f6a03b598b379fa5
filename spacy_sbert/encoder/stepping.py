"""A PyTorch shim whose updates wait for the gradients that are on their way."""

from collections.abc import Callable
from typing import cast

import torch
from thinc.api import Optimizer, PyTorchShim

from .steps import Awaited, Steps
from .weights_lock import WeightsLock

Backward = Callable[[list[torch.Tensor]], None]  # adds to the gradients of the parameters


class SteppingShim(PyTorchShim):
    """Carries out a step of training: forward pass, gradient, update, in this order, whoever asks in another.

    See Steps; the update itself, `_update`, is that of a subclass.
    """

    weights: WeightsLock
    _steps: Steps

    def finish_update(self, optimizer: Optimizer) -> None:
        """Update the weights: now, or when the gradient that a forward pass awaits has come; see Steps.

        RAISES (RuntimeError): if another thread is amid a step.
        """
        if self._model is None:  # not loaded yet
            return
        self._steps.check_thread()
        self._steps.keep(optimizer)
        if not self._steps.awaits_gradient:
            self._make_updates()

    def _update(self, optimizer: Optimizer) -> None:
        super().finish_update(optimizer)

    def _begin_step(self) -> Awaited:
        """To be called before a forward pass of training; what it returns is for _end_step.

        RAISES (RuntimeError): if another thread is amid a step.
        """
        awaited = self._steps.begin()
        self._settle()
        self._model.train()
        return awaited

    def _end_step(self, awaited: Awaited, backward: Backward, d_outputs: list[torch.Tensor]) -> None:
        """Take gradients back to the parameters, and make the updates that waited for them."""
        with self.weights.reading():  # what was not kept is computed again
            self._backward_scaled(backward, d_outputs)
        self._steps.end(awaited)
        if not self._steps.awaits_gradient:
            self._make_updates()

    def _settle(self) -> None:
        """Make the updates that wait for a gradient which will not come any more, as this thread goes on."""
        if not self._steps.is_of_another_thread:
            self._make_updates()

    def _make_updates(self) -> None:
        for optimizer in self._steps.take():
            with self.weights.writing():
                self._update(optimizer)

    def _backward_scaled(self, backward: Backward, d_outputs: list[torch.Tensor]) -> None:
        scaled = cast(list[torch.Tensor], self._grad_scaler.scale(d_outputs, inplace=True))
        # What earlier parts of an accumulated batch left is unscaled already, and will be once more.
        self._grad_scaler.scale(self._gradients(), inplace=True)
        backward(scaled)
        self._grad_scaler.unscale(self._gradients())

    def _gradients(self) -> list[torch.Tensor]:
        return [parameter.grad for parameter in self._model.parameters() if parameter.grad is not None]
