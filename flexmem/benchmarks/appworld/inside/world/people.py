"""Who lives in the world. The first three are supervisors, one for each variant of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

SUPERVISORS = 3

_NAMES = """
Nora Feld female 1988-03-14
Ivo Castell male 1991-11-02
Mira Quist female 1985-07-29
Bram Otter male 1990-05-21
Cleo Marsh female 1993-11-09
Dov Linden male 1985-04-30
Ines Rook female 1989-01-17
Jonas Hale male 1992-08-05
Quentin Pryce male 1979-12-23
Yara Sund female 1994-02-11
Tomas Brill male 1987-06-19
Lena Voss female 1990-10-08
Omar Keel male 1983-09-27
Petra Ansel female 1995-04-03
Rafi Gorman male 1986-02-26
Sana Whit female 1991-07-15
Theo Larkin male 1984-12-12
Una Morrow female 1996-05-30
Viktor Ames male 1982-01-05
Wanda Pike female 1988-09-18
Xenia Dorn female 1993-03-22
Arno Beck male 1981-06-07
Edda Frost female 1992-12-01
Gil Tarrant male 1989-08-24
"""


@dataclass(frozen=True)
class Person:
    """One person. ``number`` is their id in every app."""

    number: int
    first_name: str
    last_name: str
    sex: str
    birthday: str

    @property
    def name(self) -> str:
        """First and last name."""
        return f"{self.first_name} {self.last_name}"

    @property
    def email(self) -> str:
        """Their address, the same in all apps."""
        return f"{self.first_name}.{self.last_name}@example.com".lower()

    @property
    def phone_number(self) -> str:
        """Ten digits."""
        return f"555{0:04d}{100 + self.number:03d}"

    def password(self, app: str) -> str:
        """Theirs in an app."""
        return f"{self.last_name.lower()}-{app.replace('_', '')}-{self.number:02d}"


def _read() -> tuple[Person, ...]:
    rows = [line.split() for line in _NAMES.strip().splitlines()]
    return tuple(Person(number, *row) for number, row in enumerate(rows, 1))


PEOPLE = _read()
BY_NAME = {person.name: person for person in PEOPLE}
