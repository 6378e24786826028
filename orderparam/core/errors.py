"""What went wrong, in words."""


class SweepError(RuntimeError):
    """Every point of a sweep failed; the message is the first failure's."""


class StoreError(ValueError):
    """A store that is damaged, foreign, of another sweep, in use, or cannot be written. It is never
    overwritten."""


def message_of(error: BaseException) -> str:
    """What an error says; where that itself fails, that it cannot."""
    try:
        return str(error)
    except Exception as failure:
        return f"its message cannot be made ({type(failure).__name__})"
