"""English function words that carry no content for BM25 (docs/methods.md A.3): a fixed list, part of the method's
definition.

Words that are also content in the histories we index stay out: ``may`` (the month), ``won``, ``one``. Tokens end at an
apostrophe, so a contraction appears as its fragments (``don``, ``ll``); its one-letter rest is dropped by length.
"""

from __future__ import annotations

_DETERMINERS = "a an the this that these those each every either neither both all any some such no other same own"
_QUANTIFIERS = "few many much more most less least several enough"
_FIRST_AND_SECOND_PERSON = "i me my mine myself we us our ours ourselves you your yours yourself yourselves"
_THIRD_PERSON = "he him his himself she her hers herself it its itself they them their theirs themselves"
_QUESTION_WORDS = "who whom whose which what when where why how"
_AUXILIARIES = "am is are was were be been being have has had having do does did doing done"
_MODALS = "can cannot could will would shall should might must ought"
_CONJUNCTIONS = "and but or nor if because as while until although though than whether so unless since"
_PREPOSITIONS = """
    of at by for with about against between among into through during before after above below to from up down in out
    on off over under upon onto within without towards across around along per via
"""
_ADVERBS = "again further then once here there not only very too just also now ever yet still even else"
_CONTRACTIONS = """
    don doesn didn isn aren wasn weren hasn haven hadn wouldn shouldn couldn mustn mightn needn shan ain ll ve re
"""

STOP_WORDS: frozenset[str] = frozenset(
    " ".join(
        (
            _DETERMINERS,
            _QUANTIFIERS,
            _FIRST_AND_SECOND_PERSON,
            _THIRD_PERSON,
            _QUESTION_WORDS,
            _AUXILIARIES,
            _MODALS,
            _CONJUNCTIONS,
            _PREPOSITIONS,
            _ADVERBS,
            _CONTRACTIONS,
        )
    ).split()
)
