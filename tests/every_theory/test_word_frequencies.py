"""Every theory of the frequencies of words."""

from checks import checks

from orderparam.systems.word_frequencies import RankLaw, ReadText

SYSTEMS = [RankLaw(types=500), ReadText([0, 1, 0, 2, 3, 0, 1], [3, 7], share=0.5)]
globals().update(checks("word_frequencies", SYSTEMS, decades=0.3, still=("words", "ends")))
