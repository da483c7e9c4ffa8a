"""A text message names songs in prose; those that are short enough become a playlist, and their number is sent back."""

from __future__ import annotations

import random
from typing import Any

from world.people import BY_NAME
from world.rows import Rows, moment
from world.scenario import Facts, Scenario, fill
from world.songs import SONGS

_WISH = (
    "About the music on Saturday: open with <<t1>>, and keep <<t2>> for when the door bell stops ringing. "
    "Before the food there should be <<t3>>, with the food <<t4>>, please not louder than the talking. "
    "If anybody dances it will be to <<t5>>, and <<t6>> sends them home."
)
_EARLIER = "I keep humming <<other>> since Saturday, it follows me into the lift and up the stairs."

_SOLUTION = r"""
profile = apis.supervisor.show_profile()
passwords = {row["account_name"]: row["password"] for row in apis.supervisor.show_account_passwords()}
phone_token = apis.phone.login(username=profile["phone_number"], password=passwords["phone"])["access_token"]
messages = []
page = 0
while True:
    got = apis.phone.search_text_messages(access_token=phone_token, page_index=page, page_limit=20)
    if not got:
        break
    messages += got
    page += 1
from_friend = [row for row in messages if row["sender"]["name"] == "<<friend>>"]
wish = [row for row in from_friend if "the music on Saturday" in row["message"]][0]
first_title = read("the song to open with", wish["message"], r"open with ([\w ]+), and keep")
second_title = read("the song for when the bell stops", wish["message"], r"and keep ([\w ]+) for when")
third_title = read("the song before the food", wish["message"], r"there should be ([\w ]+), with the food")
fourth_title = read("the song with the food", wish["message"], r"with the food ([\w ]+), please")
fifth_title = read("the song to dance to", wish["message"], r"it will be to ([\w ]+), and")
sixth_title = read("the last song", wish["message"], r", and ([\w ]+) sends them home")
titles = [first_title, second_title, third_title, fourth_title, fifth_title, sixth_title]
songs = []
for title in titles:
    found = apis.spotify.search_songs(query=title)
    songs = songs + [row for row in found if row["title"] == title]
short_songs = [song for song in songs if song["duration"] <= <<limit>>]
spotify_token = apis.spotify.login(username=profile["email"], password=passwords["spotify"])["access_token"]
playlist = apis.spotify.create_playlist(title="<<title>>", is_public=False, access_token=spotify_token)
for song in short_songs:
    apis.spotify.add_song_to_playlist(
        playlist_id=playlist["playlist_id"], song_id=song["song_id"], access_token=spotify_token
    )
answered = apis.phone.send_text_message(
    phone_number=wish["sender"]["phone_number"], message=str(len(short_songs)), access_token=phone_token
)
apis.supervisor.complete_task()
"""

_EVALUATION = """
with test("assert that nothing but a playlist and a text message has changed."):
    expected = {"phone.GlobalTextMessage", "phone.UserTextMessage", "spotify.Playlist", "spotify.PlaylistSong"}
    test.case(models.changed_model_names(), "==", expected)
with test("assert that one private playlist with the title was made."):
    added, updated, removed = models.changed_records("spotify.Playlist")
    made = [(record.title, record.is_public, record.user_id) for record in added]
    test.case(made, "==", [("<<title>>", False, main_user.id)])
    test.case(len(updated) + len(removed), "==", 0)
with test("assert that it has the short ones of the songs, in their order."):
    playlist = models.changed_records("spotify.Playlist")[0][0]
    added, updated, removed = models.changed_records("spotify.PlaylistSong")
    on_it = [record.song_id for record in sorted(added, key=lambda record: record.id)]
    test.case(on_it, "==", list(private_data.song_ids))
    test.case({record.playlist_id for record in added}, "==", {playlist.id})
with test("assert that the friend got the number of songs."):
    added, updated, removed = models.changed_records("phone.GlobalTextMessage")
    sent = [(record.sender_id, record.receiver_id, record.message.strip()) for record in added]
    test.case(sent, "==", [(main_user.id, private_data.friend_id, str(len(private_data.song_ids)))])
"""


def _arrange(rows: Rows, facts: Facts) -> None:
    friend = BY_NAME[facts["friend"]]
    rows.text(friend, rows.me, fill(_EARLIER, facts), moment(4, 24, 23))
    rows.text(rows.me, friend, "Which songs do you want to hear at the party?", moment(5, 16, 19))
    rows.text(friend, rows.me, fill(_WISH, facts), moment(5, 16, 20))
    rows.text(rows.me, friend, "Let me see what I can do.", moment(5, 16, 20, 30))


def _short(facts: Facts) -> list[int]:
    wanted = [SONGS[facts[f"t{place}"]] for place in range(1, 7)]
    return [song.number for song in wanted if song.duration <= facts["limit"]]


def _private(facts: Facts) -> dict[str, Any]:
    return {"song_ids": _short(facts), "friend_id": BY_NAME[facts["friend"]].number}


def _variant(friend: str, title: str, fitting: int) -> dict[str, Any]:
    """``fitting``: how many of the six songs are short enough."""
    rng = random.Random(f"party {friend}")
    *wanted, other = rng.sample(sorted(SONGS), 7)
    durations = sorted(SONGS[name].duration for name in wanted)
    facts: dict[str, Any] = {f"t{place}": name for place, name in enumerate(wanted, 1)}
    limit = durations[fitting - 1] + (durations[fitting] - durations[fitting - 1]) // 2
    return {**facts, "friend": friend, "title": title, "other": other, "limit": limit}


PARTY = Scenario(
    name="own3e4f",
    split="dev",
    difficulty=2,
    apps=("phone", "spotify"),
    variants=(
        _variant("Yara Sund", "Saturday, not too long", 4),
        _variant("Dov Linden", "Roof party", 5),
        _variant("Sana Whit", "Kitchen and yard", 3),
    ),
    arrange=_arrange,
    instruction="""
        <<friend>> has texted me which songs should be played at the party on Saturday. Make a private Spotify playlist
        called "<<title>>" of those of them that are at most <<limit>> seconds long, in the order of that message, and
        text back just the number of songs that are on it.
    """,
    solution=_SOLUTION,
    slip=('[song for song in songs if song["duration"] <= <<limit>>]', "list(songs)"),
    evaluation=_EVALUATION,
    private=_private,
)
