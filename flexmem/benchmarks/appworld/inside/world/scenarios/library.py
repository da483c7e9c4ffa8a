"""Songs of an artist that are rated well go into the song library."""

from __future__ import annotations

from typing import Any

from world.rows import Rows
from world.scenario import Facts, Scenario
from world.songs import SONGS, artists

_SOLUTION = r"""
profile = apis.supervisor.show_profile()
passwords = {row["account_name"]: row["password"] for row in apis.supervisor.show_account_passwords()}
spotify_token = apis.spotify.login(username=profile["email"], password=passwords["spotify"])["access_token"]
artists = apis.spotify.search_artists(query="<<artist>>")
artist_id = [row["artist_id"] for row in artists if row["name"] == "<<artist>>"][0]
songs = []
page = 0
while True:
    got = apis.spotify.search_songs(artist_id=artist_id, page_index=page, page_limit=20)
    if not got:
        break
    songs += got
    page += 1
good_songs = [song for song in songs if song["rating"] >= <<rating>>]
for song in good_songs:
    apis.spotify.add_song_to_library(song_id=song["song_id"], access_token=spotify_token)
apis.supervisor.complete_task()
"""

_EVALUATION = """
with test("assert that only the song library has changed."):
    test.case(models.changed_model_names(), "==", {"spotify.UserLibrarySong"})
with test("assert that exactly the well rated songs of the artist were added, to my library."):
    added, updated, removed = models.changed_records("spotify.UserLibrarySong")
    test.case(sorted(record.song_id for record in added), "==", sorted(private_data.song_ids))
    test.case({record.user_id for record in added}, "==", {main_user.id})
    test.case(len(updated) + len(removed), "==", 0)
"""


def _arrange(rows: Rows, facts: Facts) -> None:
    """A song by somebody else is in the library already."""
    other = next(song for song in SONGS.values() if song.artist != facts["artist_id"])
    rows.models.spotify.UserLibrarySong.create_save(user_id=rows.me.number, song_id=other.number)


def _private(facts: Facts) -> dict[str, Any]:
    mine = [song for song in SONGS.values() if song.artist == facts["artist_id"]]
    return {"song_ids": [song.number for song in mine if song.rating >= facts["rating"]]}


def _variant(place: int) -> dict[str, Any]:
    """About the artist who has the most songs but ``place``; the best three or so of them are asked for."""
    counts = {number: sum(song.artist == number for song in SONGS.values()) for number in range(1, len(artists()) + 1)}
    artist = sorted(counts, key=lambda number: (-counts[number], number))[place]
    ratings = sorted((song.rating for song in SONGS.values() if song.artist == artist), reverse=True)
    return {"artist": artists()[artist - 1][0], "artist_id": artist, "rating": ratings[2]}


LIBRARY = Scenario(
    name="own6e7f",
    split="train",
    difficulty=1,
    apps=("spotify",),
    variants=(_variant(0), _variant(1), _variant(2)),
    arrange=_arrange,
    instruction="""
        Add every song by <<artist>> that is rated <<rating>> or better to my Spotify song library.
    """,
    solution=_SOLUTION,
    slip=('song["rating"] >= <<rating>>', 'song["rating"] > <<rating>>'),
    evaluation=_EVALUATION,
    private=_private,
)
