"""Which models share an account, and with it the account's limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from flexmem.llm.address import endpoint_url, is_local, public_url
from flexmem.llm.config import ModelConfig
from flexmem.llm.errors import ModelConfigurationError
from flexmem.llm.local_budget import LocalRateBudget
from flexmem.llm.rate_budget import RateLimits
from flexmem.ports import RateBudget

__all__ = ["account_limits", "account_of", "budget_for", "local_budgets"]


def account_of(config: ModelConfig) -> str | None:
    """The account that a model is called on: the configured name, else public address and key variable. None where
    there is nothing to share: a scripted model, or a local address of which nothing is stated.
    """
    if config.provider == "scripted":
        return None
    if config.account is not None:
        return config.account
    url = endpoint_url(config)
    if is_local(url) and config.requests_per_minute is None and config.tokens_per_minute is None:
        return None
    return f"{public_url(url)} {config.api_key_env}"


def account_limits(configs: Iterable[ModelConfig]) -> dict[str, RateLimits]:
    """The limits of every account that the models use; what one of them states holds for all.

    Raises:
        ModelConfigurationError: two of them state different limits for one account.
    """
    found: dict[str, RateLimits] = {}
    for config in configs:
        account = account_of(config)
        if account is None:
            continue
        known = found.get(account, RateLimits())
        found[account] = RateLimits(
            _agreed("requests_per_minute", config, known.requests, account),
            _agreed("tokens_per_minute", config, known.tokens, account),
            # A local address is mostly one's own server, which queues instead of rejecting.
            math.inf if is_local(endpoint_url(config)) else known.first_pace,
        )
    return found


def _agreed(name: str, config: ModelConfig, known: float | None, account: str) -> float | None:
    stated: float | None = getattr(config, name)
    if stated is not None and known is not None and stated != known:
        raise ModelConfigurationError(
            f"{config.model}: {name} is {stated:g} here and {known:g} for another model of the same account "
            f"({account}); state one, or give the models an `account` of their own.",
            attempts=0,
        )
    return known if stated is None else stated


def local_budgets(configs: Iterable[ModelConfig]) -> dict[str, LocalRateBudget]:
    """A budget for each account that the models use, for the callers of one event loop.

    Raises:
        ModelConfigurationError: two of them state different limits for one account.
    """
    return {account: LocalRateBudget(limits, account) for account, limits in account_limits(configs).items()}


def budget_for(config: ModelConfig, budgets: Mapping[str, RateBudget]) -> RateBudget | None:
    """The budget of a model's account; None where it has none."""
    account = account_of(config)
    return None if account is None else budgets.get(account)
