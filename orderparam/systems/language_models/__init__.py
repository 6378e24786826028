"""Language models that predict the next byte of a text: small recurrent networks and transformers
that are trained on the text, and counts of contexts.

    import jax
    from orderparam.data.text import documentation, numbered_bytes
    from orderparam.systems.language_models import LanguageTraining, trained_language_model

    text, test_text, alphabet = numbered_bytes(documentation())
    system = LanguageTraining(text, test_text, len(alphabet), width=16)
    trained_language_model(system, jax.random.key(0)).test_loss
"""

from typing import TYPE_CHECKING

from orderparam.core.exported import exported

if TYPE_CHECKING:
    from orderparam.systems.language_models.experiment import trained_language_model
    from orderparam.systems.language_models.model import LanguageTraining
    from orderparam.systems.language_models.theory import LanguageLoss, counted_contexts

LABELS = {
    "test_loss": ("test loss in nats", ""),
    "position_loss": ("test loss at a position in nats", ""),
    "width": ("width", "w"),
    "parameters": ("parameters", "N"),
    "operations": ("floating-point operations", "C"),
    "position": ("bytes of context", ""),
}

__all__ = exported(globals())
