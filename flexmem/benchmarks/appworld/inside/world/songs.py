"""The music that there is: artists and songs."""

from __future__ import annotations

import random
from dataclasses import dataclass

_ARTISTS = """
Nimbus Trio/jazz
Opal Strings/classical
Kite Parade/indie
Low Harbor/folk
Marble Arcade/electronic
The Tin Orchard/folk
Vera Holt/jazz
Paper Comets/indie
Slow Meridian/electronic
Cedar and Clay/folk
Ostrich Hotel/indie
Anna Brandt Quartet/classical
Blue Ledger/jazz
Night Ferry/electronic
Glass Valley/classical
""".strip().splitlines()

_FIRST = ["Paper", "Quiet", "Copper", "Northern", "Borrowed", "Seven", "Winter", "Open", "Salt", "Golden"]
_SECOND = ["Lanterns", "Rivers", "Windows", "Letters", "Harbours", "Orchards"]


@dataclass(frozen=True)
class Song:
    """``artist`` is the artist's number; ``duration`` is in seconds."""

    number: int
    title: str
    artist: int
    genre: str
    duration: int
    year: int
    plays: int
    likes: int
    rating: float


def artists() -> list[tuple[str, str]]:
    """Name and genre of each, in the order of their numbers."""
    return [(name, genre) for name, _, genre in (line.partition("/") for line in _ARTISTS)]


def songs() -> list[Song]:
    """All songs. Titles share words, so that a search finds several."""
    rng = random.Random("songs")
    titles = [f"{first} {second}" for first in _FIRST for second in _SECOND]
    rng.shuffle(titles)
    everybody = artists()
    made = []
    for number, title in enumerate(titles, 1):
        artist = rng.randrange(len(everybody))
        made.append(
            Song(
                number,
                title,
                artist + 1,
                everybody[artist][1],
                duration=rng.randrange(130, 390),
                year=rng.randrange(1998, 2023),
                plays=rng.randrange(40, 9_000),
                likes=rng.randrange(0, 700),
                rating=rng.randrange(20, 50) / 10,
            )
        )
    return made


SONGS = {song.title: song for song in songs()}
