"""The outline of a study, read from its source before it is imported, and how its parameters are
read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from orderparam.core.names import nearest

Size = Literal["quick", "gallery", "full"]
SIZES: tuple[Size, ...] = get_args(Size)
RUNS = 16  # fewest independent runs at the size of the gallery


class HasParameters(Protocol):
    """The attributes of a study that this module needs, whether the study is imported or not.
    defaults: parameter -> quick value; gallery, full: the parameters that these sizes change."""

    @property
    def name(self) -> str: ...
    @property
    def defaults(self) -> Mapping[str, Any]: ...
    @property
    def gallery(self) -> Mapping[str, Any]: ...
    @property
    def full(self) -> Mapping[str, Any]: ...
    def parameters(
        self, size: Size = "quick", settings: Mapping[str, Any] | None = None
    ) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Outline:
    """A study as `orderparam list NAME` shows it; doc: the docstring of the function that makes its
    curves."""

    name: str
    title: str
    source: str
    doc: str
    module: str
    seconds: tuple[float, float]
    defaults: Mapping[str, Any]
    gallery: Mapping[str, Any]
    full: Mapping[str, Any]

    def parameters(
        self, size: Size = "quick", settings: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """See `parameters_of`."""
        return parameters_of(self, size, settings)


def parameters_of(
    study: HasParameters, size: Size = "quick", settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The parameters of one run at a size: the defaults, those of `gallery` or `full`, and last the
    settings.

    At the size "gallery", numbers of independent runs (`seeds`, or a name that ends in `_seeds`)
    are at least 16 where `gallery` does not give them. Texts among the settings are read as the
    type of the default.

    Raises `ValueError` for an unknown size or name, and for a value that does not fit.
    """
    if size not in SIZES:
        raise ValueError(f"size = {size!r}: must be one of {', '.join(SIZES)}")
    enough = {
        name: max(value, RUNS)
        for name, value in study.defaults.items()
        if name == "seeds" or name.endswith("_seeds")
    }
    chosen = {
        **study.defaults,
        **{"quick": {}, "gallery": {**enough, **study.gallery}, "full": study.full}[size],
    }
    for name, value in (settings or {}).items():
        if name not in chosen:
            raise ValueError(
                f"study {study.name!r} has no parameter {name!r}{nearest(name, list(chosen))}"
            )
        chosen[name] = _read(name, value, study.defaults[name])
        _check_sign(name, chosen[name], study.defaults[name])
    return chosen


def _check_sign(name: str, value: Any, default: Any) -> None:
    """Raises `ValueError` for a negative integer where all of the default are positive integers: as
    the end of a slice it would be counted from the other end."""
    given, usual = (one if isinstance(one, tuple) else (one,) for one in (value, default))
    if all(isinstance(one, int) and one > 0 for one in usual) and any(one < 0 for one in given):
        raise ValueError(f"parameter {name} = {value!r}: must not be negative")


def _read(name: str, value: Any, default: Any) -> Any:
    """A value, converted to the type of the default that it replaces."""
    text = value if isinstance(value, str) else None
    try:
        if isinstance(default, tuple):
            items = text.split(",") if text is not None else list(value)
            example = default[0] if default else 0.0
            return tuple(
                _read(name, item.strip() if isinstance(item, str) else item, example)
                for item in items
            )
        if isinstance(default, bool):
            if text is not None:
                return {
                    "true": True,
                    "yes": True,
                    "1": True,
                    "false": False,
                    "no": False,
                    "0": False,
                }[text.lower()]
            return bool(value)
        if isinstance(default, int):
            if float(value) != int(float(value)):
                raise ValueError
            return int(float(value))
        if isinstance(default, float):
            return float(value)
        return value
    except (ValueError, TypeError, KeyError, OverflowError):
        wanted = f"a value like {default!r}"
        if isinstance(default, tuple):
            wanted = (
                f"{'integers' if default and isinstance(default[0], int) else 'numbers'} separated "
                "by commas"
            )
        raise ValueError(f"parameter {name} = {value!r}: give {wanted}") from None
