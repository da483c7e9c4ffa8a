"""Model configuration."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from flexmem.llm.config import ModelConfig, make_model
from flexmem.llm.errors import ModelConfigurationError
from flexmem.llm.openai_client import OpenAIChat


@pytest.mark.parametrize(
    "wrong",
    [
        {"modle": "x"},
        {"api_key": "sk-secret"},
        {"provider": "other"},
        {"model": ""},
        {"family": "gpt-17"},
        {"temperature": -1},
        {"attempts": 0},
        {"timeout_s": 0},
        {"requests_per_minute": 0},
        {"account": ""},
        {"api": "messages"},
        {"provider": "anthropic", "api": "chat"},
        {"provider": "anthropic", "family": "gpt-5"},
        {"family": "claude-4.6"},
    ],
)
def test_what_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ModelConfig.model_validate({"model": "m", **wrong})


def test_each_provider_has_a_key_variable_of_its_own() -> None:
    assert ModelConfig(model="m").api_key_env == "OPENAI_API_KEY"
    assert ModelConfig(provider="anthropic", model="m").api_key_env == "ANTHROPIC_API_KEY"
    assert ModelConfig(provider="anthropic", model="m", api_key_env="MINE").api_key_env == "MINE"


def test_make_model() -> None:
    model = make_model(ModelConfig(model="gpt-5.4-mini", effort="low"))
    assert isinstance(model, OpenAIChat)
    assert model.describe()["effort"] == "low"
    with pytest.raises(ModelConfigurationError, match="no scripted rule"):
        make_model(ModelConfig(provider="scripted", model="gpt-5.4-mini"))


def test_a_scripted_model_does_not_import_the_sdk() -> None:
    code = (
        "import sys; from flexmem.llm.config import ModelConfig, make_model; "
        "make_model(ModelConfig(provider='scripted', model='echo')); sys.exit('openai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
