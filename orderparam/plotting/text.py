"""Readable names: fields and observables as axis labels, facets as legend entries, and typeset
target formulas."""

import ast
from typing import Any

from orderparam.core.registry import labels_of

# Quantities of several topics: name -> words and symbol; either may be missing. Quantities of one
# topic, or those that a topic names differently, stand in the `LABELS` of its `__init__`.
_SHARED: dict[str, tuple[str, str]] = {
    "absolute_magnetisation": ("magnetisation", r"\langle|m|\rangle"),
    "batch_size": ("batch size", "b"),
    "channels": ("channels", "C"),
    "classification_error": ("classification error", r"P(\mathrm{sign} f\neq y)"),
    "cosine": ("cosine", r"\cos(w,\hat w)"),
    "degree": ("degree", "k"),
    "depth": ("depth", "L"),
    "effective_dimension": ("effective number of parameters", ""),
    "entropy": ("entropy", "s"),
    "error": ("error", r"\varepsilon"),
    "feature": ("feature", "i"),
    "input_dim": ("input dimension", "d"),
    "layer": ("layer", "l"),
    "layers": ("layer", "l"),
    "learning_rate": ("learning rate", r"\eta"),
    "load": ("load", r"\alpha"),
    "mass": ("mass", "r"),
    "mode_count": ("modes left", r"\Lambda"),
    "n_test": ("test examples", r"n_\mathrm{test}"),
    "n_train": ("training examples", "n"),
    "noise": ("label noise", r"\Delta"),
    "rate_exponent": ("learning-rate exponent", r"\delta"),
    "readout_variance": ("read-out variance", ""),
    "replicon": ("replicon (stable below 1)", ""),
    "ridge": ("ridge", r"\lambda"),
    "sample_ratio": ("samples per dimension", r"\alpha = n/d"),
    "scale": ("scale", r"\beta"),
    "spins": ("spins", "N"),
    "start": ("initial overlap", "m_0"),
    "step": ("step size", "s"),
    "target_decay": ("decay of the target", "b"),
    "temperature": ("temperature", "T"),
    "test_error": ("test error", r"E\,(y-f)^2"),
    "train_error": ("train error", r"\overline{(y-f)^2}"),
    "weight_variance": ("weight variance", r"\sigma_w^2"),
    "width": ("width", "N"),
}


def label(name: str, topic: str = "") -> tuple[str, str]:
    """Words and symbol of a field or observable, by the names of the topic `topic`."""
    plain = (name.rpartition(".")[2].replace("_", " "), "")
    own = labels_of(topic) if topic else {}
    return own.get(name) or _SHARED.get(name) or plain


def words(name: str, topic: str = "") -> str:
    """The axis label of a field or observable of a topic."""
    text, symbol = label(name, topic)
    return f"{text} ${symbol}$" if symbol else text


def value_words(name: str, value: Any, topic: str = "") -> str:
    """A facet as a title or a legend entry: "$N$ = 50", "square loss"; the formula of a facet
    called `target` is typeset."""
    if isinstance(value, str):
        return f"$y = {tex(value)}$" if name == "target" else value
    text, symbol = label(name, topic)
    symbol = symbol.split("=")[0].strip()
    return f"${symbol}$ = {number(value)}" if symbol else f"{text} {number(value)}"


def number(value: Any) -> str:
    """A number of at most four digits, with a power of ten where it is very small or large."""
    text = f"{value:.4g}" if isinstance(value, float) or hasattr(value, "dtype") else str(value)
    if "inf" in text:
        return text.replace("inf", r"$\infty$")
    mantissa, e, exponent = text.partition("e")
    if not e:
        return text
    factor = {"1": "", "-1": "-"}.get(mantissa, rf"{mantissa}\cdot")
    return f"${factor}10^{{{int(exponent)}}}$"


_UNARY = {ast.USub: "-", ast.UAdd: ""}
_FUNCTIONS = {name: rf"\mathrm{{{name}}}" for name in ("sign", "erf", "relu", "sigmoid")} | {
    name: rf"\{name}" for name in ("sin", "cos", "tan", "tanh", "sinh", "cosh", "exp", "log")
}


def tex(formula: str) -> str:
    """A target formula such as `z1 + He3(z2)/sqrt(6)` as TeX, `z_1 + \\mathrm{He}_3(z_2)/\\sqrt{6}`
    (without dollars).

    Raises `ValueError` for a text that is not a formula of names, numbers, + - * / ** and
    functions.
    """
    try:
        return _tex(ast.parse(formula, mode="eval").body, 0)
    except SyntaxError:
        raise ValueError(f"{formula!r} is not a formula") from None


def _tex(node: ast.AST, around: int) -> str:
    """TeX of a part; `around` is the precedence of the expression around it: 1 sum, 2 product, 3
    denominator or sign, 4 power."""
    match node:
        case ast.Constant(value=value):
            return f"{value:g}" if isinstance(value, float) else str(value)
        case ast.Name(id=name):
            letters = name.rstrip("0123456789")
            symbol = (
                letters
                if len(letters) == 1
                else rf"\{letters}"
                if letters == "pi"
                else rf"\mathrm{{{letters}}}"
            )
            return symbol + (f"_{{{name[len(letters) :]}}}" if name != letters else "")
        case ast.UnaryOp(op=op, operand=operand):
            return _bracketed(_UNARY[type(op)] + _tex(operand, 2), around > 2)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign = "+" if isinstance(op, ast.Add) else "-"
            return _bracketed(
                f"{_tex(left, 1)} {sign} {_tex(right, 1 if sign == '+' else 2)}", around > 1
            )
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            between = (
                r"\cdot "
                if isinstance(right, ast.Constant)
                else r"\,"
                if isinstance(left, ast.BinOp | ast.Name)
                else ""
            )
            return _bracketed(_tex(left, 2) + between + _tex(right, 3), around > 2)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _bracketed(f"{_tex(left, 2)}/{_tex(right, 3)}", around > 2)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return f"{_tex(left, 4)}^{{{_tex(right, 0)}}}"
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            inside = _tex(argument, 0)
            if name == "sqrt":
                return rf"\sqrt{{{inside}}}"
            if name == "abs":
                return f"|{inside}|"
            if name.startswith("He"):
                return rf"\mathrm{{He}}_{{{name[2:]}}}({inside})"
            return (
                rf"{_FUNCTIONS[name]}({inside})"
                if name in _FUNCTIONS
                else rf"\mathrm{{{name}}}({inside})"
            )
    raise ValueError(f"{ast.unparse(node)!r} is not a formula")


def _bracketed(text: str, needed: bool) -> str:
    return f"({text})" if needed else text
