"""A menu whose choices may change while one of them is on its way from the browser."""

from typing import Any

import panel as pn


class Menu(pn.widgets.Select):
    """Takes no choice that is no longer offered; Panel's own raises an error that nobody could
    catch."""

    def _process_property_change(self, props: dict[str, Any]) -> dict[str, Any]:
        if props.get("value", "") not in ("", *self.unicode_values, *self.labels):
            props = {name: value for name, value in props.items() if name != "value"}
        return super()._process_property_change(props)
