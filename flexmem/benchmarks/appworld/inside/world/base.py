"""The base databases and the API documentation that all tasks start from."""

from __future__ import annotations

import json
import os
from typing import Any

from appworld.apps import get_all_apps
from appworld.apps.api_lib import set_local_date_and_time, set_local_random_seed
from appworld.apps.model_lib import CachedDBHandler, get_db_home_path
from appworld.collections.api_docs import ApiDocCollection
from appworld.collections.models import ModelCollection
from appworld.common.constants import CANARY_STRING, DB_VERSION
from appworld.common.datetime import DateTime

from world.furniture import furnish
from world.people import PEOPLE, SUPERVISORS, Person
from world.rows import NOW, Rows
from world.songs import artists, songs

ACCOUNTS = ("amazon", "file_system", "gmail", "phone", "simple_note", "splitwise", "spotify", "todoist", "venmo")
"""The apps that one logs in to."""

VENMO_BALANCE = 2_000.0
_JOINED = DateTime(2022, 1, 1)


def make_base(data: str) -> None:
    """Write ``api_docs``, ``base_dbs`` and ``version.txt`` below the empty folder ``data`` of AppWorld's root."""
    folder = os.path.join(data, "base_dbs")
    os.makedirs(folder)
    freezer = set_local_date_and_time(NOW)
    set_local_random_seed(1)
    try:
        _write_api_docs(os.path.join(data, "api_docs", "standard"))
        apps = list(get_all_apps())
        at = get_db_home_path("memory", "base")  # on a disk, each of thousands of rows would wait for it
        models = ModelCollection.load(to_db_home_path=at, from_db_home_path=at, load_apps=apps, create_db=True)
        _add_api_docs(models)
        for person in PEOPLE:
            _add_person(models, person)
        _add_music(models)
        for person in PEOPLE[:SUPERVISORS]:
            furnish(Rows(models, person))
        models.save(db_home_path=folder, format="full", app_names=apps)
        models.close()
        CachedDBHandler.reset()
    finally:
        freezer.stop()
    with open(os.path.join(data, "version.txt"), "w", encoding="utf-8") as file:
        file.write(DB_VERSION)


def _write_api_docs(folder: str) -> None:
    """AppWorld reads them from files, which carry its canary."""
    os.makedirs(folder)
    for app, documents in ApiDocCollection.build(load_apps=tuple(get_all_apps(skip_admin=True))).items():
        content = {name: {**document, "canary_string": CANARY_STRING} for name, document in documents.items()}
        with open(os.path.join(folder, f"{app}.json"), "w", encoding="utf-8") as file:
            json.dump(content, file)


def _add_api_docs(models: Any) -> None:
    """The rows that the app ``api_docs`` answers from."""
    row = models.api_docs.ApiDoc
    fields = ("api_name", "path", "method", "description", "parameters", "response_schemas")
    row.save_all(
        [
            row(app_name_=document["app_name"], **{field: document[field] for field in fields})
            for documents in ApiDocCollection.load(include_response_schemas=True).values()
            for document in documents.values()
        ]
    )


def _add_person(models: Any, person: Person) -> None:
    """A person with an account in every app."""
    user = models.admin.MainUser.create_save(
        first_name=person.first_name,
        last_name=person.last_name,
        email=person.email,
        phone_number=person.phone_number,
        sex=person.sex,
        birthday=person.birthday,
    )
    card = {
        "owner_name": person.name,
        "card_name": "Visa",
        "card_number": 4_000_000_000_000_000 + person.number,
        "expiry_year": 2027,
        "expiry_month": 5,
        "cvv_number": 110 + person.number,
    }
    models.admin.PaymentCard.create_save(main_user_id=user.id, balance=1_000.0, **card)
    for app in ACCOUNTS:
        password = person.password(app)
        models.admin.AccountPassword.create_save(main_user_id=user.id, account_name=app, password=password)
        known = {
            "first_name": person.first_name,
            "last_name": person.last_name,
            "email": person.email,
            "phone_number": person.phone_number,
            "password": password,
            "verified": True,
            "venmo_balance": VENMO_BALANCE,
            "created_at": _JOINED,
            "last_logged_in": _JOINED,
        }
        account = models[app].User
        account.create_save(**{name: value for name, value in known.items() if name in account.__fields__})
    models.venmo.PaymentCard.create_save(user_id=person.number, **card)


def _add_music(models: Any) -> None:
    """Artists and songs, and a player for everybody."""
    spotify = models.spotify
    for name, genre in artists():
        spotify.Artist.create_save(name=name, genre=genre, created_at=DateTime(2015, 1, 1))
    for song in songs():
        spotify.Song.create_save(
            title=song.title,
            artist_ids=[song.artist],
            album_id=None,
            duration=song.duration,
            release_date=DateTime(song.year, 3, 1),
            genre=song.genre,
            play_count=song.plays,
            rating=song.rating,
            like_count=song.likes,
        )
    for person in PEOPLE:
        spotify.MusicPlayer.create_save(
            user_id=person.number,
            queue_song_ids=[1, 2, 3],
            is_playing=False,
            is_looping=False,
            cursor_position=0,
            played_seconds=0,
            volume=5,
        )
