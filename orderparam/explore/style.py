"""The look of the page: plain, in one column on a narrow screen, light or dark."""

_COLOURS = {
    False: (
        "--ex-ink: #1a1a1a; --ex-paper: #ffffff; --ex-line: #c9cdd3; --ex-quiet: #5a6068; "
        "--ex-warn: #9a3b00; --ex-card: #fafbfc;--ex-accent: #0072B2; --ex-picture: none;"
    ),
    True: (
        "--ex-ink: #e4e6eb; --ex-paper: #16181d; --ex-line: #4a505c; --ex-quiet: #a5abb5; "
        "--ex-warn: #ffb27a; --ex-card: #1d2026;--ex-accent: #56B4E9; --ex-picture: invert(0.88) "
        "hue-rotate(180deg);"
    ),
}

_RULES = """
:root, :host { font-size: 13px; font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
html, body { background: var(--ex-paper); color: var(--ex-ink); margin: 0; }
:host { color: var(--ex-ink); }
h1 { font-size: 18px; font-weight: 600; margin: 6px 0; }
h2 { font-size: 22px; font-weight: 600; margin: 2px 0; overflow-wrap: anywhere; }
h3 { font-size: 14px; font-weight: 600; margin: 8px 0 2px 0; }
.sees { font-size: 15px; line-height: 1.45; max-width: 75ch; }
.question { color: var(--ex-quiet); margin: 4px 0 0 0; }
math { font-size: 1.05em; }
.card { border: 1px solid var(--ex-line) !important; border-radius: 6px;
  background: transparent !important; }
.card { box-shadow: none !important; }
.card-header { font-size: 13px !important; }
.card-header { background: var(--ex-card) !important; color: var(--ex-ink) !important;
  border-radius: 6px; }
p { margin: 4px 0; font-size: 13px; line-height: 1.4; }
small { color: var(--ex-quiet); font-size: 12px; }
.warn { color: var(--ex-warn); }
table { border-collapse: collapse; font-size: 13px; margin: 6px 0;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 2px 0; }
th, td { padding: 2px 10px 2px 0; text-align: right; }
th { border-bottom: 1px solid var(--ex-line); font-weight: 500; }
label { color: var(--ex-ink); }
input, select, textarea, button { color: var(--ex-ink); }
.bk-input, .choices__inner, .choices__list--dropdown {
  background-color: var(--ex-paper) !important;
}
.bk-input, .choices__inner, .choices__list--dropdown { color: var(--ex-ink) !important;
  border-color: var(--ex-line) !important; }
textarea.bk-input { color: var(--ex-ink) !important;
  -webkit-text-fill-color: var(--ex-ink) !important; }
textarea.bk-input { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12px; }
textarea.bk-input { opacity: 1 !important; cursor: text !important; }
pre { font-size: 12px; overflow-x: auto; }
.bk-tab { color: var(--ex-quiet) !important; }
.bk-tab.bk-active { color: var(--ex-ink) !important;
  border-bottom: 2px solid var(--ex-accent) !important; }
code { font-size: 12px; }
:focus-visible { outline: 2px solid #56B4E9; outline-offset: 1px; }
"""


def css(dark: bool) -> str:
    """The style sheet of the page, for a dark or a light background."""
    return f":root, :host {{ {_COLOURS[dark]} }}\n{_RULES}"
