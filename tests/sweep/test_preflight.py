"""What a run looks at before anything is started or paid."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from flexmem.llm.config import ModelConfig
from flexmem.llm.reply_store import ReplyStoreError, check_store
from flexmem.sweep.config import ConfigError
from flexmem.sweep.preflight import check_prices, check_replies

UNPRICED = ModelConfig(model="somebody-elses-model", base_url="http://127.0.0.1:9/v1")


def test_a_cap_needs_the_price_of_every_model() -> None:
    check_prices([UNPRICED], None)
    priced = ModelConfig(model="gpt-4o-mini")  # at its own address: another may ask what it likes
    check_prices([priced], 1.0)
    with pytest.raises(ConfigError, match="the price of somebody-elses-model is not known; give `price`"):
        check_prices([priced, UNPRICED], 1.0)


def test_a_store_that_is_none_is_refused_with_its_name(tmp_path: Path) -> None:
    store = tmp_path / "replies.sqlite"
    check_replies(store, None)
    assert not store.exists()  # none is made before the run starts
    store.write_bytes(b"this is no database" * 100)
    with pytest.raises(ReplyStoreError, match=r"replies\.sqlite: can't be used as the store of replies"):
        check_replies(store, None)


def test_a_replay_needs_a_finished_runs_replies(tmp_path: Path) -> None:
    kept = tmp_path / "kept.sqlite"
    check_store(kept)
    check_replies(tmp_path / "new.sqlite", kept)
    with pytest.raises(ReplyStoreError, match=r"gone\.sqlite: holds no replies to replay"):
        check_replies(kept, tmp_path / "gone.sqlite")
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as other:
        other.execute("CREATE TABLE things (name TEXT)")
    with pytest.raises(ReplyStoreError, match=r"other\.sqlite: holds no replies to replay"):
        check_replies(kept, tmp_path / "other.sqlite")
