"""One number as a native slider of the browser, which works with keyboards and screen readers.

It must be registered before a page is served, because a browser knows only the models that the
server had when the page was opened.
"""

from typing import ClassVar

import param
from panel.custom import JSComponent


class Slider(JSComponent):
    """One number: a range that the keyboard moves, and a field to type it into. position: 0 to
    steps; shown: the number as text; typed: what was typed, and a count that makes the same text an
    event again."""

    label = param.String()
    meaning = param.String()
    position = param.Integer(0)
    steps = param.Integer(240)
    shown = param.String()
    typed = param.List([])

    _esm = """
    export function render({ model }) {
      const box = document.createElement("div")
      box.className = "knob"
      const id = "k" + Math.random().toString(36).slice(2)
      const label = document.createElement("label")
      label.htmlFor = id
      label.textContent = model.label
      label.title = model.meaning
      const field = document.createElement("input")
      field.type = "text"
      field.inputMode = "decimal"
      field.autocomplete = "off"
      field.setAttribute("aria-label", model.label + ", typed")
      field.value = model.shown
      const range = document.createElement("input")
      range.type = "range"
      range.id = id
      range.min = 0
      range.max = model.steps
      range.step = 1
      range.value = model.position
      range.setAttribute("aria-valuetext", model.shown)
      range.setAttribute("aria-description", model.meaning)
      range.addEventListener("input", () => { model.position = Number(range.value) })
      let count = 0
      field.addEventListener("change", () => { model.typed = [field.value.slice(0, 60), ++count] })
      model.on("position", () => {
        if (Number(range.value) !== model.position) range.value = model.position
      })
      model.on("shown", () => {
        field.value = model.shown
        range.setAttribute("aria-valuetext", model.shown)
      })
      box.append(label, field, range)
      return box
    }
    """
    _stylesheets: ClassVar[list[str]] = [
        """
        .knob { display: grid; grid-template-columns: 1fr 6.2em; column-gap: 8px;
          align-items: baseline; }
        .knob { font-size: 13px; width: 100%; }
        .knob label { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        .knob input[type=text] { font: inherit; width: 100%; box-sizing: border-box;
          text-align: right; padding: 1px 4px; }
        .knob input[type=text] { border: 1px solid var(--ex-line); border-radius: 3px;
          background: transparent; color: inherit; }
        .knob input[type=range] { grid-column: 1 / 3; width: 100%; margin: 3px 0 6px 0;
          accent-color: #0072B2; height: 18px; }
        .knob input:focus-visible { outline: 2px solid #56B4E9; }
        """
    ]
