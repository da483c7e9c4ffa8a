"""Which models share an account, and what is known of its limits."""

from __future__ import annotations

import math
from typing import Any

import pytest

from flexmem.llm.accounts import account_limits, account_of, budget_for, local_budgets
from flexmem.llm.config import ModelConfig
from flexmem.llm.errors import ModelConfigurationError
from flexmem.llm.rate_budget import RateLimits

OPENAI = "https://api.openai.com/v1 OPENAI_API_KEY"


def config(**fields: Any) -> ModelConfig:
    return ModelConfig.model_validate({"model": "m", **fields})


def test_an_account_is_an_address_and_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert account_of(config()) == OPENAI
    assert account_of(config(base_url="https://user:secret@api.openai.com/v1/")) == OPENAI
    assert account_of(config(api_key_env="JUDGE_KEY")) == "https://api.openai.com/v1 JUDGE_KEY"
    assert account_of(config(provider="anthropic")) == "https://api.anthropic.com ANTHROPIC_API_KEY"
    assert account_of(config(account="mine")) == "mine"
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example.com/v1")
    assert account_of(config()) == "https://gateway.example.com/v1 OPENAI_API_KEY"


def test_what_shares_nothing_has_no_account() -> None:
    local = {"base_url": "http://localhost:8000/v1"}
    assert account_of(config(**local)) is None
    assert account_of(config(**local, requests_per_minute=5)) == "http://localhost:8000/v1 OPENAI_API_KEY"
    assert account_of(config(**local, account="mine")) == "mine"
    assert account_of(config(provider="scripted", model="echo", requests_per_minute=5)) is None
    assert account_limits([config(**local), config(provider="scripted", model="echo")]) == {}


def test_what_one_model_states_holds_for_its_account() -> None:
    models = [config(requests_per_minute=600), config(tokens_per_minute=1e6), config(account="b")]
    assert account_limits(models) == {OPENAI: RateLimits(600, 1e6), "b": RateLimits()}


def test_a_server_of_one_s_own_is_not_approached_slowly() -> None:
    (limits,) = account_limits([config(base_url="http://localhost:1/v1", account="mine")]).values()
    assert limits == RateLimits(None, None, math.inf)


def test_limits_that_contradict_each_other_are_refused() -> None:
    models = [config(requests_per_minute=600), config(model="other", requests_per_minute=60)]
    with pytest.raises(ModelConfigurationError, match="other: requests_per_minute is 60 here and 600 for another"):
        account_limits(models)
    assert len(account_limits([models[0], config(requests_per_minute=60, account="other")])) == 2


def test_models_of_one_account_get_one_budget() -> None:
    reader, judge, own = config(requests_per_minute=600), config(model="other"), config(account="b")
    budgets = local_budgets([reader, judge, own])
    assert budgets.keys() == {OPENAI, "b"}
    assert budget_for(reader, budgets) is budget_for(judge, budgets) is budgets[OPENAI]
    assert budget_for(own, budgets) is budgets["b"]
    assert budget_for(config(provider="scripted", model="echo"), budgets) is None
    assert budget_for(config(account="c"), budgets) is None
