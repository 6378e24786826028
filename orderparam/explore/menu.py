"""A menu whose choices may change while the browser is sending one of them."""

from typing import Any

import panel as pn


class Menu(pn.widgets.Select):
    """A menu that ignores a choice that is no longer offered. Panel's own menu raises an error that
    cannot be caught."""

    def _process_property_change(self, props: dict[str, Any]) -> dict[str, Any]:
        if props.get("value", "") not in ("", *self.unicode_values, *self.labels):
            props = {name: value for name, value in props.items() if name != "value"}
        return super()._process_property_change(props)
