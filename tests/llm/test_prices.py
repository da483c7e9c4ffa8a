"""What calls cost: stated prices, the list of public ones, and what is unknown."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from genai_prices import Usage as Counts
from genai_prices import calc_price
from pydantic import ValidationError

from flexmem import tokens
from flexmem.llm.config import ModelConfig
from flexmem.llm.openai_client import OpenAIChat
from flexmem.llm.prices import PriceFileError, StatedPrice, TokenPrice, find_price, most_usd, price_from_file
from flexmem.ports import ChatRequest, Message, Usage

FULL = TokenPrice(input=2.0, output=10.0, cached=0.5, cache_written=2.5)
OPENAI = "https://api.openai.com/v1"


@pytest.fixture(autouse=True)
def bare_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


# ---------------------------------------------------------------- stated prices


@pytest.mark.parametrize(
    ("usage", "micro"),
    [
        (Usage(1_000, 100), 1_000 * 2 + 100 * 10),
        (Usage(1_000, 100, cached=400), 600 * 2 + 400 * 0.5 + 100 * 10),
        (Usage(1_000, 100, cached=400, cache_written=300), 300 * 2 + 400 * 0.5 + 300 * 2.5 + 100 * 10),
        (Usage(1_000, 100, reasoning=90), 1_000 * 2 + 100 * 10),  # reasoning is part of the output
        (Usage(0, 0), 0.0),
    ],
)
def test_a_stated_price(usage: Usage, micro: float) -> None:
    assert StatedPrice(FULL).usd(usage) == pytest.approx(micro / 1e6)


@pytest.mark.parametrize("usage", [Usage(), Usage(7, None), Usage(None, 7), Usage(10, 1, cached=11)])
def test_what_the_counts_leave_open_is_unknown_and_not_zero(usage: Usage) -> None:
    assert StatedPrice(FULL).usd(usage) is None
    listed = find_price(ModelConfig(model="gpt-5.4-mini", base_url=OPENAI))
    assert listed is not None
    assert listed.usd(usage) is None


def test_cached_tokens_cost_as_much_as_others_where_nothing_else_is_said() -> None:
    price = StatedPrice(TokenPrice(input=2.0, output=10.0))
    assert price.usd(Usage(1_000, 0, cached=400, cache_written=300)) == pytest.approx(0.002)


def test_the_most_that_a_request_can_cost() -> None:
    assert StatedPrice(FULL).most_usd(1_000, 50) == pytest.approx((1_000 * 2.5 + 50 * 10) / 1e6)  # all written
    cheap_cache = TokenPrice(input=2.0, output=10.0, cached=0.5, cache_written=1.0)
    assert StatedPrice(cheap_cache).most_usd(1_000, 50) == pytest.approx((1_000 * 2 + 50 * 10) / 1e6)


@pytest.mark.parametrize("wrong", [{"input": 1}, {"input": -1, "output": 1}, {"input": 1, "output": 1, "reply": 2}])
def test_prices_that_are_none(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        ModelConfig.model_validate({"model": "m", "price": wrong})


# ---------------------------------------------------------------- the list of public prices


@pytest.mark.parametrize(
    ("provider", "model", "url"),
    [
        ("openai", "gpt-5.4-mini", OPENAI),
        ("openai", "gpt-5.6-sol", OPENAI),  # costs twice as much from 272,000 prompt tokens on
        ("openai", "gemini-2.5-pro", "https://generativelanguage.googleapis.com/v1beta/openai"),
        ("anthropic", "claude-sonnet-4-6", "https://api.anthropic.com"),
        ("anthropic", "claude-opus-4-8", "https://api.anthropic.com"),
    ],
)
@pytest.mark.parametrize(
    ("prompt", "cached", "written", "output"), [(1_000, 0, 0, 100), (1_000, 600, 300, 100), (300_000, 1_000, 0, 5)]
)
def test_a_listed_price_is_what_the_package_itself_works_out(
    provider: str, model: str, url: str, prompt: int, cached: int, written: int, output: int
) -> None:
    now = datetime.now(UTC)
    price = find_price(ModelConfig.model_validate({"provider": provider, "model": model, "base_url": url}))
    assert price is not None
    counts = Counts(input_tokens=prompt, cache_read_tokens=cached, cache_write_tokens=written, output_tokens=output)
    expected = calc_price(counts, model, provider_api_url=url, genai_request_timestamp=now).total_price
    usage = Usage(prompt, output, cached=cached, cache_written=written)
    assert price.usd(usage, now.timestamp()) == pytest.approx(float(expected))
    assert float(expected) > 0
    assert price.most_usd(prompt, output) >= float(expected)


def test_a_listed_price_changes_with_the_time() -> None:
    price = find_price(ModelConfig(model="gpt-5.6-sol", base_url=OPENAI))
    assert price is not None
    before, after = datetime(2026, 8, 1, tzinfo=UTC), datetime(2026, 9, 1, tzinfo=UTC)
    usd = [price.usd(Usage(1_000_000 // 10, 0), at.timestamp()) for at in (before, after)]
    assert usd == [pytest.approx(0.5), pytest.approx(0.4)]  # cut from 5 $ to 4 $ on 21 August


def test_source_and_date_are_told() -> None:
    price = find_price(ModelConfig(model="gpt-5.6-sol", base_url=OPENAI))
    assert price is not None
    assert price.source.startswith("genai-prices 0.")
    assert price.as_of is not None
    assert price.as_of >= date(2026, 8, 21)
    stated = find_price(ModelConfig.model_validate({"model": "m", "price": {"input": 1, "output": 1}}))
    assert stated is not None
    assert (stated.source, stated.as_of) == ("the configuration", None)


@pytest.mark.parametrize(
    "config",
    [
        {"model": "gpt-5.4-mini", "base_url": "http://localhost:8000/v1"},  # the name alone costs nothing
        {"model": "gpt-5.4-mini", "base_url": "https://gateway.example.com/v1"},
        {"model": "gpt-not-yet", "base_url": OPENAI},
    ],
)
def test_no_price_is_made_up(config: dict[str, str]) -> None:
    assert find_price(ModelConfig.model_validate(config)) is None
    assert most_usd(ModelConfig.model_validate(config), 1_000, 1_000) is None


def test_the_provider_s_own_address_is_assumed_where_none_is_given() -> None:
    assert find_price(ModelConfig(model="gpt-5.4-mini")) is not None
    assert find_price(ModelConfig(provider="anthropic", model="claude-opus-5")) is not None


def test_a_user_may_state_a_price_of_nothing_and_a_scripted_model_costs_it() -> None:
    local = ModelConfig.model_validate(
        {"model": "m", "base_url": "http://localhost:1/v1", "price": {"input": 0, "output": 0}}
    )
    for config in (local, ModelConfig(provider="scripted", model="echo")):
        price = find_price(config)
        assert price is not None
        assert price.usd(Usage(1_000, 100)) == 0.0
        assert most_usd(config, 1_000, 100) == 0.0


# ---------------------------------------------------------------- a user's own file


def written(folder: Path, text: str) -> Path:
    path = folder / "prices.yaml"
    path.write_text(text)
    return path


PRICES = """
gpt-5.4-mini: {input: 1, output: 2, as_of: 2026-11-30}
"Qwen*": {input: 0.1, output: 0.2, cached: 0.01}
"*": {input: 9, output: 9}
"""


def test_the_first_pattern_that_fits_counts(tmp_path: Path) -> None:
    path = written(tmp_path, PRICES)
    exact = price_from_file(path, "openai/GPT-5.4-mini")
    assert exact == TokenPrice(input=1, output=2, as_of=date(2026, 11, 30), source=str(path))
    pattern = price_from_file(path, "Qwen/qwen3-8b")
    assert pattern is not None
    assert (pattern.input, pattern.cached) == (0.1, 0.01)
    assert price_from_file(path, "gpt-5.4-mini-2026-03-17") == TokenPrice(input=9, output=9, source=str(path))
    assert price_from_file(written(tmp_path, "gpt: {input: 1, output: 1}"), "gpt-5.4-mini") is None
    assert price_from_file(written(tmp_path, ""), "gpt-5.4-mini") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- gpt", "valid dictionary"),
        ("gpt: 1", r"gpt: .*an entry is PATTERN"),
        ("gpt: {input: 1}", r"gpt\.output: Field required"),
        ("gpt: {input: cheap, output: 1}", r"gpt\.input: "),
        ("gpt: [", "is no YAML"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(PriceFileError, match=words) as raised:
        price_from_file(path, "gpt")
    assert str(raised.value).startswith(f"{path}: ")
    with pytest.raises(PriceFileError, match="can't be read"):
        price_from_file(tmp_path / "gone.yaml", "gpt")


def test_a_configuration_reads_its_file_once(tmp_path: Path) -> None:
    path = written(tmp_path, PRICES)
    config = ModelConfig.model_validate({"model": "gpt-5.4-mini", "price_file": str(path)})
    path.unlink()  # workers on other machines have no such file
    assert config.price == TokenPrice(input=1, output=2, as_of=date(2026, 11, 30), source=str(path))
    assert ModelConfig.model_validate(config.model_dump()) == config
    with pytest.raises(ValidationError, match="can't be read"):
        ModelConfig.model_validate({"model": "gpt-5.4-mini", "price_file": str(path)})


def test_a_stated_price_goes_before_the_file_and_the_file_before_the_list(tmp_path: Path) -> None:
    path = written(tmp_path, "other: {input: 9, output: 9}")
    listed = find_price(ModelConfig(model="gpt-5.4-mini", base_url=OPENAI, price_file=path))
    assert listed is not None
    assert listed.source.startswith("genai-prices")
    mine = ModelConfig.model_validate({"model": "other", "price_file": str(path), "price": {"input": 1, "output": 1}})
    assert mine.price is not None
    assert mine.price.input == 1


def test_the_most_that_a_call_can_cost_counts_hidden_reasoning_and_other_tokenizers() -> None:
    text = "Where is it? " * 100
    request = ChatRequest((Message("system", "be brief"), Message("user", text)), "reader", 512, schema={"title": "x"})
    prompt = sum(tokens.count(one) + 16 for one in ("be brief", text, '{"title": "x"}'))
    price = {"input": 2.0, "output": 10.0, "cache_written": 4.0}
    model = OpenAIChat(ModelConfig.model_validate({"model": "gpt-5.4", "price": price}))
    assert model.most_usd(request) == pytest.approx((round(1.5 * prompt) * 4 + (512 + 4_096) * 10) / 1e6)
    plain = OpenAIChat(ModelConfig.model_validate({"model": "gpt-4.1", "price": price, "max_tokens": 100}))
    assert plain.most_usd(request) == pytest.approx((round(1.5 * prompt) * 4 + 100 * 10) / 1e6)
    unknown = OpenAIChat(ModelConfig(model="m", base_url="http://localhost:1/v1"))
    assert unknown.most_usd(request) is None
