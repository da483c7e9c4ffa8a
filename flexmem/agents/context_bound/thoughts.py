"""Thoughts that carry no fact: sentences that fit any step of any task."""

from __future__ import annotations

from random import Random

_SENTENCES = tuple(
    line.split()
    for line in """
Let me think about what should come next before I go on.
So far this looks right, and I see no reason to change the course.
I want to be careful here and take one small step at a time.
It seems best to go on in the same way as before.
Nothing surprising has turned up, which is good.
I will do this now and look at what comes back.
There is no hurry, so it is better to be thorough.
Once that is there, the rest should follow easily.
I should not take anything for granted that I have not seen.
If something goes wrong, I can still have another look at it.
That leaves the question of how to proceed from here.
First things first: this has to be in place before anything else.
I keep in mind what was asked for and work towards it.
After that I can decide what remains to be done.
This is a plain matter, and one action will be enough for it.
I would rather make sure than guess.
""".strip().splitlines()
)


def thought(words: int, rng: Random) -> str:
    """Exactly ``words`` words of sentences drawn at random; the last one may be cut."""
    drawn: list[str] = []
    while len(drawn) < words:
        drawn += rng.choice(_SENTENCES)
    return " ".join(drawn[:words])
