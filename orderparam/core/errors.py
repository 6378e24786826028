"""The package's exceptions, and the text of any exception."""


class SweepError(RuntimeError):
    """Every point of a sweep failed; the message is the first failure's."""


class StoreError(ValueError):
    """A store that is damaged, was written by another program or for another sweep, is in use, or
    cannot be written. It is never overwritten."""


def message_of(error: BaseException) -> str:
    """The message of an exception, or a sentence that it has none if its own text fails."""
    try:
        return str(error)
    except Exception as failure:
        return f"its message cannot be made ({type(failure).__name__})"
