"""A file from the browser. A file that is too large is refused in the browser, before any of it is
sent.

It must be registered before a page is served, because a browser knows only the models that the
server had when the page was opened.
"""

import base64
import binascii
from typing import ClassVar

import param
from panel.custom import JSComponent

from orderparam.explore.folder import LARGEST


class Upload(JSComponent):
    """A field to choose a file. chosen: the name of the file, its bytes in base 64 (none where
    there are more than `largest`), its number of bytes, and a count that makes the same file an
    event again.
    """

    label = param.String()
    accept = param.String()
    largest = param.Integer(LARGEST)
    chosen = param.List([])

    _esm = """
    export function render({ model }) {
      const box = document.createElement("label")
      box.className = "upload"
      box.textContent = model.label
      const field = document.createElement("input")
      field.type = "file"
      field.accept = model.accept
      let count = 0
      field.addEventListener("click", () => { field.value = "" })
      field.addEventListener("change", () => {
        const file = field.files[0]
        if (!file) return
        const own = ++count
        const tell = (text) => {
          if (own === count) model.chosen = [file.name, text, file.size, own]
        }
        if (file.size > model.largest) { tell(""); return }
        const reader = new FileReader()
        reader.addEventListener("load", () => tell(reader.result.split(",")[1] || ""))
        reader.addEventListener("error", () => tell(""))
        reader.readAsDataURL(file)
      })
      box.append(field)
      return box
    }
    """
    _stylesheets: ClassVar[list[str]] = [
        """
        .upload { display: block; font-size: 13px; width: 100%; }
        .upload input { display: block; font: inherit; width: 100%; margin-top: 3px;
          color: inherit; }
        .upload input:focus-visible { outline: 2px solid #56B4E9; }
        """
    ]

    def file(self) -> tuple[str, bytes, int]:
        """The name of the file, its bytes, and how many it has. Raises `ValueError` for values that
        the page never sends.
        """
        try:
            name, text, size, _ = self.chosen
            content = base64.b64decode(text, validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise ValueError("the file did not arrive: choose it again") from None
        if not isinstance(name, str) or isinstance(size, bool) or not isinstance(size, int):
            raise ValueError("the file did not arrive: choose it again")
        if len(content) != size and size <= self.largest:
            raise ValueError(f"{name[:80]} did not arrive whole: choose it again")
        return name, content, size
