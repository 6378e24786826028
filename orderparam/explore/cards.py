"""Pictures of systems and studies to choose from, under headings, with a search.

It must be registered before a page is served, because a browser knows only the models that the
server had when the page was opened.
"""

from typing import ClassVar

import param
from panel.custom import JSComponent


class Cards(JSComponent):
    """groups: headings with their cards, [{title, about, cards: [{name, title, text, picture,
    words}]}]; picture is SVG or the address of an image, and words is the text that is searched.
    address: the beginning of every link, before a name. label: that of the search field.

    chosen: the name of the card that was clicked, and a count that makes the same card an event
    again.
    """

    groups = param.List([])
    address = param.String("")
    label = param.String("search")
    chosen = param.List([])

    _esm = """
    export function render({ model }) {
      const element = (tag, cls, text) => {
        const made = document.createElement(tag)
        if (cls) made.className = cls
        if (text) made.textContent = text
        return made
      }
      const box = element("div", "cards")
      const search = element("input", "search")
      search.type = "search"
      search.placeholder = model.label
      search.setAttribute("aria-label", model.label)
      const body = element("div")
      const nothing = element("p", "about", "Nothing fits these words.")
      let count = 0
      const draw = () => {
        body.replaceChildren()
        const wanted = search.value.toLowerCase().split(/\\s+/).filter(Boolean)
        let shown = 0
        for (const group of model.groups) {
          const matches = (one) => wanted.every((word) => one.words.includes(word))
          const cards = group.cards.filter(matches)
          if (!cards.length) continue
          shown += cards.length
          body.append(element("h2", "", group.title))
          if (group.about) body.append(element("p", "about", group.about))
          const grid = element("div", "grid")
          for (const one of cards) {
            const card = element("a", "card")
            card.href = model.address + encodeURIComponent(one.name)
            card.dataset.name = one.name
            const picture = element("div", "picture")
            if (one.picture.startsWith("<svg")) picture.innerHTML = one.picture
            else if (one.picture) {
              const image = element("img")
              image.src = one.picture
              image.alt = ""
              image.loading = "lazy"
              picture.append(image)
            }
            card.append(picture, element("strong", "", one.title), element("span", "", one.text))
            card.addEventListener("click", (event) => {
              if (event.ctrlKey || event.metaKey || event.shiftKey) return
              event.preventDefault()
              model.chosen = [one.name, ++count]
            })
            grid.append(card)
          }
          body.append(grid)
        }
        if (!shown) body.append(nothing)
      }
      search.addEventListener("input", draw)
      model.on("groups", draw)
      draw()
      box.append(search, body)
      return box
    }
    """
    _stylesheets: ClassVar[list[str]] = [
        """
        .cards { width: 100%; }
        .search { margin-top: 12px; }
        .search { width: 100%; max-width: 420px; box-sizing: border-box; font: inherit;
          font-size: 15px; padding: 7px 10px; }
        .search { border: 1px solid var(--ex-line); border-radius: 6px; background: transparent;
          color: inherit; }
        h2 { font-size: 18px; font-weight: 600; margin: 22px 0 2px 0; }
        .about { color: var(--ex-quiet); font-size: 14px; margin: 0 0 8px 0; }
        .grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(168px, 1fr));
          gap: 10px; }
        .card { display: flex; flex-direction: column; gap: 3px; padding: 8px; }
        .card { border: 1px solid var(--ex-line); border-radius: 8px; }
        .card { color: inherit; text-decoration: none; background: var(--ex-card); }
        .card:hover, .card:focus-visible { border-color: var(--ex-accent);
          outline: 1px solid var(--ex-accent); }
        .card strong { font-size: 14px; font-weight: 600; line-height: 1.25;
          overflow-wrap: anywhere; }
        .card span { font-size: 12px; color: var(--ex-quiet); line-height: 1.35;
          overflow-wrap: anywhere; }
        .picture { height: 108px; display: flex; align-items: center; justify-content: center;
          overflow: hidden; }
        .picture svg { width: 100%; height: 100%; }
        .picture img { max-width: 100%; max-height: 100%; border-radius: 3px;
          filter: var(--ex-picture); }
        path { fill: none; stroke-width: 2; stroke-linejoin: round; }
        circle { fill: var(--ex-ink); stroke: var(--ex-card); stroke-width: 0.8; }
        @media (max-width: 480px) { .grid { grid-template-columns: repeat(2, 1fr); gap: 8px; }
          .card { padding: 6px; } }
        """
    ]
