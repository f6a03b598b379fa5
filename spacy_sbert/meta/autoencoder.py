"""Meta-embeddings by cross-view autoencoders."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal

import numpy
import torch
from pydantic import Field
from torch.nn import functional

from ..arrays import Arrays
from ..models.surroundings import check_gradients, undisturbed
from ..progress import progress_of
from ..validation import Positive, PositiveFloat, Seed, Width, check_weights, validated
from .estimator import MetaEmbedding, Views

LAYERS = (0, 1, 2)
# The loss of each is saved
_MAX_EPOCHS = 1_000_000


def _kl_divergence(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return 1 / n sum_i KL(softmax(y_i) || softmax(x_i))."""
    log_x = functional.log_softmax(x, dim=1)
    log_y = functional.log_softmax(y, dim=1)
    return functional.kl_div(log_x, log_y, reduction="batchmean", log_target=True)


def _squared_cosine_distance(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return 1 / n sum_i (1 - cos(x_i, y_i))^2."""
    return (1 - functional.cosine_similarity(x, y, dim=1)).square().mean()


# Of reconstructions x and members' vectors y, (n, d) each
LOSSES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    # 1 / (n d) sum_i |x_i - y_i|^2
    "mse": functional.mse_loss,
    # 1 / (n d) sum_i |x_i - y_i|_1
    "mae": functional.l1_loss,
    "kld": _kl_divergence,
    "cosine": _squared_cosine_distance,
}


class _CrossViewNetwork(torch.nn.Module):
    """Encoders E_j and decoders D_j of J members.

    Each is a linear map, or a feed-forward network with ReLU behind each of its hidden layers of
    width d.

    widths (J ints): d_j. size (int): d. hidden_layers (int): of each encoder and decoder.
    """

    def __init__(self, widths: Sequence[int], size: int, hidden_layers: int):
        super().__init__()
        hidden = [size] * hidden_layers
        self.encoders = torch.nn.ModuleList(
            _feed_forward([width, *hidden, size]) for width in widths
        )
        self.decoders = torch.nn.ModuleList(
            _feed_forward([size, *hidden, width]) for width in widths
        )

    def forward(self, views: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the code: sum_j E_j(x_j), (n, d), of J views (n, d_j)."""
        return torch.stack(self._codes(views)).sum(dim=0)

    def loss(self, views: Sequence[torch.Tensor], loss: str) -> torch.Tensor:
        """Return sum_j sum_k l(D_k(E_j(x_j)), x_k), over all J x J pairs of J views (n, d_j)."""
        losses = []
        for code in self._codes(views):
            for decode, view in zip(self.decoders, views, strict=True):
                losses.append(LOSSES[loss](decode(code), view))
        return torch.stack(losses).sum()

    def _codes(self, views: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [encode(view) for encode, view in zip(self.encoders, views, strict=True)]


def _feed_forward(widths: Sequence[int]) -> torch.nn.Sequential:
    """Return linear layers of these widths, with ReLU between them."""
    layers: list[torch.nn.Module] = []
    for n_in, n_out in itertools.pairwise(widths):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


class CrossViewAutoencoder(MetaEmbedding):
    """Sum of the codes of the members.

    Their autoencoders reconstruct every member from the code of every member.

    F(s) = sum_j E_j(F_j(s)), with E and D trained to minimise sum_s sum_j sum_k l(D_k(E_j(F_j(s))),
    F_k(s)) by Adam with beta 0.9 and 0.999. See _CrossViewNetwork for E and D, LOSSES for l.

    hidden_layers (int): of each encoder and decoder, 0, 1 or 2, each of width d.
    loss (str): "mse", "mae", "kld" or "cosine".
    epochs, batch_size (int), learn_rate (float): of the training.
    seed (int): of the weights at the start and of the order of the sentences.
    dtype (str): of the arithmetic, "float32" or "float64".
    parameters_: arrays by name, the weights. losses_: float64 (epochs,), the mean loss of the
        batches of each epoch.
    SOURCE: Poerner et al. 2020, section 3.4; Bollegala and Bao 2018, Learning Word Meta-Embeddings
        by Autoencoding.
    """

    method = "ae"

    @validated
    def __init__(
        self,
        *,
        size: Width | None = None,
        normalize: bool = True,
        hidden_layers: Annotated[int, Field(ge=0, le=LAYERS[-1])] = 0,
        loss: Literal["mse", "mae", "kld", "cosine"] = "mse",
        epochs: Annotated[int, Field(ge=1, le=_MAX_EPOCHS)] = 500,
        batch_size: Positive = 10_000,
        learn_rate: PositiveFloat = 0.001,
        seed: Seed = 0,
        dtype: Literal["float32", "float64"] = "float32",
    ):
        super().__init__(size=size, normalize=normalize)
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
    def parameters_(self) -> Arrays:
        """Return the weights by name."""
        if self._network is None:
            return {}
        return {name: value.numpy() for name, value in self._network.state_dict().items()}

    @property
    def arrays(self) -> Arrays:
        if not self.widths_:
            return {}
        return {**self.parameters_, "losses_": self.losses_}

    @undisturbed()
    def set_arrays(self, arrays: Mapping[str, numpy.ndarray]) -> None:
        network = self._new_network(self.widths_)
        network.load_state_dict(
            {name: torch.from_numpy(arrays[name]) for name in network.state_dict()}
        )
        self._use(network, arrays["losses_"])

    def _use(self, network: _CrossViewNetwork, losses: numpy.ndarray) -> None:
        """Take a network that was trained, and its losses."""
        self._network = network.eval().requires_grad_(False)
        self.losses_ = losses

    def check_size(self, widths: Sequence[int], n: int) -> None:
        widest = max(widths)
        size = self.size or widest
        if self.hidden_layers:
            widest = max(widest, size)
        check_weights("size", size, size, widest)

    @undisturbed()
    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        check_gradients("the meta-embedding of method 'ae'")
        widths = [view.shape[1] for view in views]
        self.check_size(widths, len(views[0]))
        self._check_finite(views, names)
        network = self._new_network(widths)
        optimizer = torch.optim.Adam(network.parameters(), lr=self.learn_rate, betas=(0.9, 0.999))
        rng = numpy.random.default_rng(self.seed)
        losses = []
        epochs = range(self.epochs)
        for epoch in progress_of(epochs, desc="Training", unit="epochs", shown=progress):
            order = rng.permutation(len(views[0]))
            loss = self._train_epoch(network, optimizer, views, names, order)
            if not numpy.isfinite(loss):
                raise ValueError(
                    f"The loss is not finite in epoch {epoch + 1}. Lower learn_rate = "
                    f"{self.learn_rate}."
                )
            losses.append(loss)
        self.size_ = self.size or max(widths)
        self._use(network, numpy.array(losses))

    def _train_epoch(
        self,
        network: _CrossViewNetwork,
        optimizer: torch.optim.Optimizer,
        views: Views,
        names: Sequence[str],
        order: numpy.ndarray,
    ) -> float:
        """Train on all sentences, in batches of this order, and return the mean loss of these."""
        losses = []
        for start in range(0, len(order), self.batch_size):
            # In the order on disk
            rows = numpy.sort(order[start : start + self.batch_size])
            batch = self._prepared([view[rows] for view in views], names)
            optimizer.zero_grad()
            loss = network.loss(self._tensors(batch), self.loss)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return float(torch.stack(losses).mean())

    def _new_network(self, widths: Sequence[int]) -> _CrossViewNetwork:
        # The caller's random numbers stay
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = _CrossViewNetwork(widths, self.size or max(widths), self.hidden_layers)
        return network.to(getattr(torch, self.dtype))

    def _tensors(self, views: Sequence[numpy.ndarray]) -> list[torch.Tensor]:
        return [torch.from_numpy(view).to(getattr(torch, self.dtype)) for view in views]

    @undisturbed()
    @torch.no_grad()
    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        assert self._network is not None
        return self._network(self._tensors(views)).double().numpy()
