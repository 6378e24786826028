"""Every theory of language models."""

from checks import checks

from orderparam.systems.language_models import LanguageTraining

TEXT = [0, 1, 2, 0, 1, 1, 2, 0, 2, 1] * 12
SYSTEMS = [LanguageTraining(TEXT, TEXT[:40], 3, n_train=100, context=8)]
globals().update(checks("language_models", SYSTEMS, decades=0.0, still=("text", "test_text")))
