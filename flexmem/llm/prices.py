"""What model calls cost, in USD.

A price comes from the user's configuration, else from the price list that the package ``genai-prices`` ships, which
knows the public providers by their addresses. Everything else has no price: what such a call costs is unknown (None)
and never taken for nothing.
"""

from __future__ import annotations

import fnmatch
import importlib.metadata
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from flexmem.errors import FlexmemError
from flexmem.llm.address import endpoint_url
from flexmem.ports import Usage

if TYPE_CHECKING:
    from flexmem.llm.config import ModelConfig

__all__ = ["Price", "PriceFileError", "StatedPrice", "TokenPrice", "find_price", "most_usd", "price_from_file"]

_MILLION = 1_000_000


class PriceFileError(FlexmemError, ValueError):
    """A price file can't be used; the message names it and says what is wrong."""


class TokenPrice(BaseModel):
    """A price that a user states, in USD per million tokens; 0 is a price. Prompt tokens that are read from a cache, or
    written to one, cost as much as others where nothing else is said. Hidden reasoning is output.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    cache_written: float | None = Field(default=None, ge=0)
    as_of: date | None = None  # when it was looked up
    source: str = "the configuration"


class Price(Protocol):
    """What a model costs. ``source`` tells who says so, ``as_of`` since when, or when it was looked up; None where
    nobody knows."""

    @property
    def source(self) -> str: ...

    @property
    def as_of(self) -> date | None: ...

    def usd(self, usage: Usage, at: float | None = None) -> float | None:
        """The price of a call at a time (Unix seconds, None: now); None where the provider's counts leave it open."""
        ...

    def most_usd(self, prompt_tokens: int, output_tokens: int) -> float:
        """The most that one request of so many tokens can cost: all of the prompt may be written to a cache, and all of
        the reply be used.
        """
        ...


def find_price(config: ModelConfig) -> Price | None:
    """The price of a configured model; None where it is unknown, as at any local address unless the user states one.
    A scripted model costs nothing.
    """
    if config.price is not None:
        return StatedPrice(config.price)
    if config.provider == "scripted":
        return StatedPrice(TokenPrice(input=0, output=0, source="nobody is paid for a scripted model"))
    return ListedPrice.find(config.model, endpoint_url(config))


def most_usd(config: ModelConfig, prompt_tokens: int, output_tokens: int) -> float | None:
    """`Price.most_usd` of a configured model; None where its price is unknown."""
    price = find_price(config)
    return None if price is None else price.most_usd(prompt_tokens, output_tokens)


def price_from_file(path: Path, model: str) -> TokenPrice | None:
    """The first entry of a user's price file whose pattern (as of shells, any case) fits the model's name, with or
    without a provider's prefix; None where none does.

    Raises:
        PriceFileError: the file can't be read, or holds something else than prices by pattern.
    """
    try:
        entries = _FILE.validate_python(yaml.safe_load(path.read_text("utf-8")) or {})
    except (OSError, UnicodeDecodeError) as error:
        raise PriceFileError(f"{path}: can't be read ({error})") from error
    except yaml.YAMLError as error:
        raise PriceFileError(f"{path}: is no YAML ({error})") from error
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in problem["loc"]) or "the file"
        raise PriceFileError(
            f"{path}: {place}: {problem['msg']}; an entry is PATTERN: {{input: 0.75, output: 4.5, cached: 0.075}}"
        ) from error
    name = model.lower()
    for pattern, entry in entries.items():
        if any(fnmatch.fnmatchcase(one, pattern.lower()) for one in (name, name.rsplit("/", 1)[-1])):
            return entry.model_copy(update={"source": str(path)})
    return None


_FILE = TypeAdapter(dict[str, TokenPrice])


@dataclass(frozen=True, slots=True)
class _Rates:
    """USD per million tokens; None: as other prompt tokens."""

    input: float
    output: float
    cached: float | None
    cache_written: float | None

    def usd(self, usage: Usage) -> float | None:
        if usage.input is None or usage.output is None:
            return None
        cached, written = usage.cached or 0, usage.cache_written or 0
        plain = usage.input - cached - written
        if plain < 0:  # counts that can't be
            return None
        micro = plain * self.input + usage.output * self.output
        micro += cached * (self.input if self.cached is None else self.cached)
        micro += written * (self.input if self.cache_written is None else self.cache_written)
        return micro / _MILLION

    def most_usd(self, prompt_tokens: int, output_tokens: int) -> float:
        dearest = max(self.input, self.cached or 0.0, self.cache_written or 0.0)
        return (prompt_tokens * dearest + output_tokens * self.output) / _MILLION


class StatedPrice:
    """A `Price` that the user states."""

    def __init__(self, price: TokenPrice) -> None:
        self.source, self.as_of = price.source, price.as_of
        self._rates = _Rates(price.input, price.output, price.cached, price.cache_written)

    def usd(self, usage: Usage, at: float | None = None) -> float | None:
        """See `Price.usd`."""
        return self._rates.usd(usage)

    def most_usd(self, prompt_tokens: int, output_tokens: int) -> float:
        """See `Price.most_usd`."""
        return self._rates.most_usd(prompt_tokens, output_tokens)


class ListedPrice:
    """A `Price` of the list that ``genai-prices`` ships; nothing is fetched. Long prompts may cost more a token."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.source = f"genai-prices {importlib.metadata.version('genai-prices')}"

    @classmethod
    def find(cls, model: str, url: str) -> ListedPrice | None:
        """The price of a model at an address; None where the list doesn't have it, or has no price of tokens."""
        from genai_prices.data_snapshot import get_snapshot  # half a second, and nobody else needs it

        try:
            _, info = get_snapshot().find_provider_model(model, None, None, url)
        except LookupError:
            return None
        prices = info.get_prices(datetime.now(UTC))
        return None if prices.input_mtok is None or prices.output_mtok is None else cls(info)

    @property
    def as_of(self) -> date | None:
        """Since when the price holds, where the list says so; else only its version tells its age."""
        prices, now = self._model.prices, datetime.now(UTC)
        starts = [
            one.constraint.start_date
            for one in (prices if isinstance(prices, list) else ())
            if hasattr(one.constraint, "start_date") and one.constraint.active(now)
        ]
        return max(starts, default=None)

    def usd(self, usage: Usage, at: float | None = None) -> float | None:
        """See `Price.usd`."""
        return self._rates(usage.input or 0, at).usd(usage)

    def most_usd(self, prompt_tokens: int, output_tokens: int) -> float:
        """See `Price.most_usd`."""
        return self._rates(prompt_tokens, None).most_usd(prompt_tokens, output_tokens)

    def _rates(self, prompt_tokens: int, at: float | None) -> _Rates:
        """The prices of a request with so many prompt tokens. The package's own sum takes 0.7 ms a call."""
        prices = self._model.get_prices(datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC))
        return _Rates(
            _rate(prices.input_mtok, prompt_tokens) or 0.0,
            _rate(prices.output_mtok, prompt_tokens) or 0.0,
            _rate(prices.cache_read_mtok, prompt_tokens),
            _rate(prices.cache_write_mtok, prompt_tokens),
        )


def _rate(price: Any, prompt_tokens: int) -> float | None:
    """USD per million tokens; a tier's price holds for all tokens of a request with a longer prompt than its start."""
    if price is None:
        return None
    for tier in reversed(getattr(price, "tiers", ())):
        if prompt_tokens > tier.start:
            return float(tier.price)
    return float(getattr(price, "base", price))
