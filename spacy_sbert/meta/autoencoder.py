"""Cross-view autoencoders: each member is reconstructed from the code of each member."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated

import numpy
import torch
from pydantic import Field
from torch.nn import functional

from ..errors import Errors
from ..progress import progress_of
from ..validation import Positive, PositiveFloat, Seed, Width, check_weights, validated
from .estimators import MetaEmbedding, Views
from .linear import MIN_VARIANCE


def _kl_divergence(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    logs = functional.log_softmax(x, dim=1), functional.log_softmax(y, dim=1)
    return functional.kl_div(*logs, reduction="batchmean", log_target=True)


def _squared_cosine_distance(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (1 - functional.cosine_similarity(x, y, dim=1)).square().mean()


# Of reconstructions x and members' vectors y, (n, d) each.
LOSSES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mse": functional.mse_loss,  # 1 / (n d) sum_i |x_i - y_i|^2
    "mae": functional.l1_loss,  # 1 / (n d) sum_i |x_i - y_i|_1
    "kld": _kl_divergence,  # 1 / n sum_i KL(softmax(y_i) || softmax(x_i))
    "cosine": _squared_cosine_distance,  # 1 / n sum_i (1 - cos(x_i, y_i))^2
}


LAYERS = (0, 1, 2)
_MAX_EPOCHS = 1_000_000  # the loss of each is saved
_DTYPES = {"float32": torch.float32, "float64": torch.float64}


class _CrossViewNetwork(torch.nn.Module):
    """Encoders E_j and decoders D_j of J members.

    Each is a linear map, or a feed-forward network with ReLU behind each of its hidden layers of width d.

    widths (J ints): d_j. size (int): d. hidden_layers (int): of each encoder and decoder.
    """

    def __init__(self, widths: Sequence[int], size: int, hidden_layers: int):
        super().__init__()
        hidden = [size] * hidden_layers
        self.encoders = torch.nn.ModuleList(_feed_forward([width, *hidden, size]) for width in widths)
        self.decoders = torch.nn.ModuleList(_feed_forward([size, *hidden, width]) for width in widths)

    def forward(self, views: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the code: sum_j E_j(x_j), (n, d), of J views (n, d_j)."""
        return torch.stack(self._codes(views)).sum(dim=0)

    def loss(self, views: Sequence[torch.Tensor], loss: str) -> torch.Tensor:
        """Return sum_j sum_k l(D_k(E_j(x_j)), x_k), over all J x J pairs of J views (n, d_j)."""
        compare, pairs = LOSSES[loss], list(zip(self.decoders, views, strict=True))
        parts = [compare(decode(code), view) for code in self._codes(views) for decode, view in pairs]
        return torch.stack(parts).sum()

    def _codes(self, views: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [encode(view) for encode, view in zip(self.encoders, views, strict=True)]


def _feed_forward(widths: Sequence[int]) -> torch.nn.Sequential:
    """Return linear layers of these widths, with ReLU between them."""
    layers: list[torch.nn.Module] = []
    for n_in, n_out in itertools.pairwise(widths):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


class CrossViewAutoencoder(MetaEmbedding):
    """The sum of the members' codes, of autoencoders that reconstruct every member from the code of every member.

    F(s) = sum_j E_j(F_j(s)), with E and D trained to minimise sum_s sum_j sum_k l(D_k(E_j(F_j(s))), F_k(s)) by Adam
    with beta 0.9 and 0.999. See _CrossViewNetwork for E and D, LOSSES for l.

    hidden_layers (int): of each encoder and decoder, 0, 1 or 2, each of width d.
    loss (str): "mse", "mae", "kld" or "cosine".
    epochs, batch_size (int), learn_rate (float): of the training.
    seed (int): of the weights at the start and of the order of the sentences.
    dtype (str): of the arithmetic, "float32" or "float64".
    parameters_: arrays by name, the weights. losses_: float64 (epochs,), the mean loss of the batches of each epoch.
    SOURCE: Poerner et al. 2020, section 3.4; Bollegala and Bao 2018, Learning Word Meta-Embeddings by Autoencoding.
    """

    method = "ae"

    @validated
    def __init__(
        self,
        *,
        size: Width | None = None,
        normalize: bool = True,
        hidden_layers: int = 0,
        loss: str = "mse",
        epochs: Annotated[int, Field(ge=1, le=_MAX_EPOCHS)] = 500,
        batch_size: Positive = 10_000,
        learn_rate: PositiveFloat = 0.001,
        seed: Seed = 0,
        dtype: str = "float32",
    ):
        super().__init__(size=size, normalize=normalize)
        options = [("hidden_layers", hidden_layers, LAYERS), ("loss", loss, LOSSES), ("dtype", dtype, _DTYPES)]
        for name, value, known in options:
            if value not in known:
                expected = f"one of {', '.join(map(str, known))}"
                raise ValueError(Errors.META_BAD_OPTION.format(name=name, given=value, expected=expected))
        self.hidden_layers = hidden_layers
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.learn_rate = learn_rate
        self.seed = seed
        self.dtype = dtype
        self.losses_ = numpy.zeros(0)
        self._network: _CrossViewNetwork | None = None

    @property
    def parameters_(self) -> dict[str, numpy.ndarray]:
        """Return the weights by name."""
        network = self._network
        return {} if network is None else {name: value.numpy() for name, value in network.state_dict().items()}

    def check_size(self, widths: Sequence[int], names: Sequence[str], n: int) -> None:
        self._sized(widths)  # any size is possible that fits into memory

    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        widths = [view.shape[1] for view in views]
        self._check(views, names)
        network = self._new_network(widths)
        optimizer = torch.optim.Adam(network.parameters(), lr=self.learn_rate, betas=(0.9, 0.999))
        rng = numpy.random.default_rng(self.seed)
        losses = []
        for epoch in progress_of(range(self.epochs), desc="Training", unit="epochs", shown=progress):
            batch_losses = []
            for batch in self._batches(views, names, rng):
                optimizer.zero_grad()
                loss = network.loss(batch, self.loss)
                loss.backward()
                optimizer.step()
                batch_losses.append(loss.detach())
            losses.append(float(torch.stack(batch_losses).mean()))
            if not numpy.isfinite(losses[-1]):
                raise ValueError(
                    f"The loss of the autoencoder is not finite in epoch {epoch + 1}. Set learn_rate lower "
                    f"than {self.learn_rate}, or normalize = true."
                )
        self.losses_, self.size_ = numpy.array(losses), self.size or max(widths)
        self._network = network.eval().requires_grad_(False)

    def _sized(self, widths: Sequence[int]) -> int:
        """Return the width of the code. RAISES (ValueError): if it makes too many weights."""
        size = self.size or max(widths)
        check_weights("size", size, size, max(*widths, size if self.hidden_layers else 0))
        return size

    def _new_network(self, widths: Sequence[int]) -> _CrossViewNetwork:
        size = self._sized(widths)
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay
            torch.manual_seed(self.seed)
            return _CrossViewNetwork(widths, size, self.hidden_layers).to(_DTYPES[self.dtype])

    def _check(self, views: Views, names: Sequence[str]) -> None:
        """Check that every number is finite and no member is the same for every sentence."""
        low = [numpy.full(view.shape[1], numpy.inf) for view in views]
        high = [-edge for edge in low]
        for block in self._blocks(views, names):
            low = [numpy.minimum(edge, view.min(axis=0)) for edge, view in zip(low, block, strict=True)]
            high = [numpy.maximum(edge, view.max(axis=0)) for edge, view in zip(high, block, strict=True)]
        for name, least, most in zip(names, low, high, strict=True):
            if not ((most - least) ** 2 > MIN_VARIANCE * numpy.maximum(most**2, least**2)).any():
                raise ValueError(Errors.META_ZERO_VARIANCE.format(name=name, n=len(views[0])))

    def _batches(self, views: Views, names: Sequence[str], rng: numpy.random.Generator) -> Iterator[list[torch.Tensor]]:
        order = rng.permutation(len(views[0]))
        for start in range(0, len(order), self.batch_size):
            rows = numpy.sort(order[start : start + self.batch_size])  # read in the order on disk
            prepared = [self._prepared(view[rows], name, 0) for name, view in zip(names, views, strict=True)]
            yield [torch.from_numpy(view).to(_DTYPES[self.dtype]) for view in prepared]

    @torch.no_grad()
    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        if self._network is None:
            raise ValueError(Errors.META_NOT_FITTED.format(method=self.method))
        code = self._network([torch.from_numpy(view).to(_DTYPES[self.dtype]) for view in views])
        return code.double().numpy()

    def state(self) -> dict[str, object]:
        return {**super().state(), "arrays": {**self.parameters_, "losses_": self.losses_} if self.widths_ else {}}

    def _set_arrays(self, arrays: Mapping[str, numpy.ndarray]) -> None:
        self.losses_ = arrays["losses_"]
        network = self._new_network(self.widths_)
        network.load_state_dict({name: torch.from_numpy(arrays[name]) for name in network.state_dict()})
        self._network = network.eval().requires_grad_(False)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        network = self._new_network(self.widths_)
        return {**{name: tuple(value.shape) for name, value in network.state_dict().items()}, "losses_": (self.epochs,)}
