"""What people in the world write that no task is about: sentences drawn by a seed, so that listings are as long and as
wordy as those of a life.
"""

from __future__ import annotations

import random

_SENTENCES = """
The heating in the stairwell rattles again, and the caretaker says that a part has to come from abroad.
I walked along the canal this morning and counted eleven herons before the rain began.
The bakery at the corner closes for good in June, so we should go there once more together.
My sister sends her regards and asks whether you still have her blue umbrella.
Nobody has found the key to the bicycle cellar yet, so please leave the side door on the latch.
The new teacher is strict about scales, but my left hand is already better for it.
We moved the big table under the window, and the whole room looks twice as wide.
The library wants the atlas back, although I could swear that I returned it in March.
There was a fox in the yard last night, quite calm, and it looked at me as if I were the guest.
I tried the recipe with half of the sugar, and nobody noticed the difference.
The train was late by forty minutes, but the light over the fields made up for it.
Could you look at the draft again before the weekend, mainly at the second half of it?
The tomatoes on the balcony are up, all of them, even those in the cracked pot.
I have booked the small hall for the rehearsal, the large one was taken by the chess club.
They finally repaired the clock on the town hall, and now everybody complains that it is loud.
Let me know when you are back, there is a parcel for you standing in our hallway.
The film was longer than it had to be, but the last scene stays with you.
Our neighbours are looking for someone who waters their plants in the first week of June.
The dentist has moved across the street, to the yellow house with the two chimneys.
I found your scarf behind the seat of the car and have put it with your mail.
The choir sings on the market square on Sunday, weather permitting, and bread is shared afterwards.
Our printer has given up, so the programmes will be copied at the station instead.
I read the first hundred pages in one go and then could not remember a single name.
The ferry runs only twice a day now, which makes the island quieter than it has been for years.
""".strip().splitlines()

_SUBJECTS = """
The stairwell again
Photos of the walk
Choir on Sunday
Minutes of the house meeting
A parcel for you
Rehearsal room
Draft, second half
Atlas overdue
Plants in June
Greetings from the island
Film club, next round
The blue umbrella
Recipe as promised
Chess club and hall
Clock and complaints
Balcony report
Keys, once more
Herons
Bread on the square
""".strip().splitlines()

_TITLES = """
Books to return
Presents, ideas
Recipe, bread with seeds
Measurements of the flat
Words I keep misspelling
Wine that was good
House meeting
Passwords are elsewhere
Walks with a station at both ends
Plants and water
Films to see
Questions for the dentist
Winter tyres
Packing, in general
Birds by the canal
Light bulbs
Songs for the choir
Gifts that went down well
Shelf, sketch with numbers
Names of the neighbours' cats
Bus times, summer
Paint, which shade it was
""".strip().splitlines()

_PAYMENTS = """
Bread and cheese for the picnic
Half of the taxi from the station
Two tickets for the film club
Birthday present for Edda, my share
Paint for the fence, second tin
Coffee beans from the market
Lunch by the harbour
Strings for the guitar
Seedlings and a bag of soil
Copying the programmes
Swimming hall, ten visits
Lamp from the flea market
""".strip().splitlines()

SUBJECTS = tuple(_SUBJECTS)
TITLES = tuple(_TITLES)
PAYMENTS = tuple(_PAYMENTS)


def paragraph(rng: random.Random, sentences: int) -> str:
    """Sentences in a row, none of them twice."""
    return " ".join(rng.sample(_SENTENCES, sentences))


def letter(rng: random.Random, sender: str, receiver: str) -> str:
    """A mail's text of two paragraphs."""
    first, second = paragraph(rng, 2), paragraph(rng, 2)
    return f"Hello {receiver},\n\n{first}\n\n{second}\n\nYours,\n{sender}"
