"""Names as people read them: fields and observables as axis labels, facets as legend entries,
target formulas typeset.
"""

import ast
from typing import Any

# name, or room.name where a room's convention is another -> words and symbol; either may be missing
WORDS: dict[str, tuple[str, str]] = {
    "activation": ("activation", ""),
    "absolute_magnetisation": ("magnetisation", r"\langle|m|\rangle"),
    "acceptance_rate": ("acceptance rate", ""),
    "basin_edge": ("edge of the basin", "m_b"),
    "annealing_sweeps": ("sweeps", ""),
    "batch_ratio": ("batch per dimension", r"n_B/d"),
    "batch_size": ("batch size", "b"),
    "binder": ("Binder ratio", r"1-\langle m^4\rangle/3\langle m^2\rangle^2"),
    "capacity": ("capacity", r"\alpha"),
    "channels": ("channels", "C"),
    "chi": ("adaptation", r"\chi"),
    "classification_error": (r"classification error", r"P(\mathrm{sign} f\neq y)"),
    "condition": ("condition number", r"s_\mathrm{max}/s_\mathrm{min}"),
    "copies": ("copies of every mode", "m"),
    "count": ("stored pictures", ""),
    "cross_validation": ("cross-validated error", ""),
    "damage": ("damaged pixels", ""),
    "correlation": ("correlation", r"\langle s_0 s_r\rangle"),
    "decay": ("decay", r"\beta"),
    "degree": ("degree", "k"),
    "depth": ("depth", "L"),
    "cosine": ("cosine", r"\cos(w,\hat w)"),
    "energy": ("energy per spin", "e"),
    "effective_dimension": ("effective number of parameters", ""),
    "effective_width": ("effective width", "k_c"),
    "eigenvalue_ratio": ("kernel eigenvalue ratio", ""),
    "exact": ("restored exactly", ""),
    "excess_risk": ("excess risk", r"E\,(f-f_*)^2"),
    "epoch": ("epoch", ""),
    "error": ("error", r"\varepsilon"),
    "feature": ("feature", "i"),
    "flip_probability": ("spins that turn in one step", ""),
    "load": ("load", r"\alpha"),
    "overlap": ("overlap", ""),
    "committee.overlap": ("overlap of a unit with itself", "Q_{11}"),
    "unit_ratio": ("samples per dimension and unit", r"n/(Kd)"),
    "cross_overlap": ("overlap with another unit", "Q_{12}"),
    "per_dimension": ("examples per dimension", "n/d"),
    "ratio": ("ratio", ""),
    "exit_samples": ("samples until exit", "n"),
    "exit_steps": ("steps until exit", "n/b"),
    "field": ("field", "h"),
    "heat_capacity": ("heat capacity", "c"),
    "hint": ("overlap of the hint", "Q"),
    "horizon": ("horizon", ""),
    "input_dim": ("input dimension", "d"),
    "kurtosis": ("excess kurtosis", ""),
    "layer": ("layer", "l"),
    "layers": ("layer", "l"),
    "learnability": ("learnability", ""),
    "learning_rate": ("learning rate", r"\eta"),
    "l1": ("penalty", r"\lambda_1"),
    "length": ("length", "L"),
    "magnetisation": ("magnetisation", r"\langle m\rangle"),
    "mass": ("mass", "r"),
    "mistakes": ("share of mistakes in training", ""),
    "next_threshold": ("samples per dimension of the next directions", ""),
    "replicon": ("replicon (stable below 1)", ""),
    "n_test": ("test examples", r"n_\mathrm{test}"),
    "n_train": ("training examples", "n"),
    "nngp_bias": ("bias of the NNGP kernel", r"\langle \mathrm{E}\hat K - K, K\rangle / \|K\|^2"),
    "nngp_correlation": ("NNGP kernel", r"K(\theta)/K(0)"),
    "nngp_fluctuation": ("fluctuation of the NNGP kernel", r"\|\delta\hat K\|/\|K\|"),
    "noise": ("label noise", r"\Delta"),
    "ntk_bias": (
        "bias of the tangent kernel",
        r"\langle \mathrm{E}\hat\Theta - \Theta, \Theta\rangle / \|\Theta\|^2",
    ),
    "ntk_correlation": ("tangent kernel", r"\Theta(\theta)/\Theta(0)"),
    "ntk_fluctuation": ("fluctuation of the tangent kernel", r"\|\delta\hat\Theta\|/\|\Theta\|"),
    "patches": ("patches", ""),
    "online_sgd.test_error": ("population risk", r"R = \frac{1}{2}\,\mathrm{E}(f_*-f)^2"),
    "order_parameters": ("order parameters", "Q"),
    "rate_exponent": ("learning-rate exponent", r"\delta"),
    "readout_variance": ("read-out variance", ""),
    "above_infinite_data": ("error above that of infinite data", ""),
    "above_infinite_width": ("error above that of infinite width", ""),
    "data_share": ("share of the examples", "n/(N+n)"),
    "population_eigenvalue": ("eigenvalue", r"\lambda_k"),
    "rank": ("rank", "k"),
    "target_tail": ("target's power from here on", r"\sum_{j\geq k} y_j^2"),
    "target_decay": ("decay of the target", "b"),
    "spins": ("spins", "N"),
    "ridge": ("ridge", r"\lambda"),
    "prior.density": ("density", r"\rho"),
    "sample_ratio_needed": ("samples per dimension needed", r"n/d"),
    "sample_ratio": ("samples per dimension", r"\alpha = n/d"),
    "scale": ("scale", r"\beta"),
    "spread": ("spread along the target", r"d\langle\rho^2\rangle/\sigma_w^2"),
    "start": ("initial overlap", "m_0"),
    "squared_field": ("squared field", r"\langle\phi^2\rangle"),
    "states": ("states", "q"),
    "steps": ("diagonal steps", "n"),
    "bias": ("bias", "b"),
    "margin": ("margin", r"\kappa"),
    "success_fraction": ("success fraction", ""),
    "error_fraction": ("fraction of errors", "f"),
    "entropy": ("entropy", "s"),
    "step": ("step size", "s"),
    "success": ("recalled", ""),
    "support": ("share of non-zero weights", ""),
    "temperature": ("temperature", "T"),
    "test_bias": ("bias", r"E\,(y-\langle f\rangle)^2"),
    "test_error": ("test error", r"E\,(y-f)^2"),
    "test_variance": ("variance", r"E\,(f-\langle f\rangle)^2"),
    "total_learnability": ("learnability", ""),
    "train_error": ("train error", r"\overline{(y-f)^2}"),
    "weight_variance": ("weight variance", r"\sigma_w^2"),
    "width_kurtosis": ("excess kurtosis", r"\times\ N"),
    "closure": ("closure", ""),
    "neighbour_coupling": ("coupling of neighbours", "K_1"),
    "cut": ("modes kept", r"\Lambda"),
    "exact_ridge": ("ridge", r"T(\Lambda)"),
    "fluctuation": ("posterior variance", ""),
    "frozen": ("modes learned", "k_h"),
    "mode_count": ("modes left", r"\Lambda"),
    "non_gaussianity": ("non-Gaussianity", "g"),
    "nu": ("exponent of the correlation length", r"\nu"),
    "omega": ("correction exponent", r"\omega"),
    "quartic": ("quartic term", "u"),
    "relative_mass": ("slope of the loss", r"m(Q)/\rho"),
    "renormalization.components": ("components", "n"),
    "renormalization.dim": ("dimension", "d"),
    "renormalization.level": ("mode", "k"),
    "shift": ("interaction", r"m/\rho-1"),
    "squared_deviation": ("squared deviation", "Q"),
    "starting_coupling": ("coupling", "K"),
    "width": ("width", "N"),
}


def words(name: str, room: str = "") -> str:
    """A field or observable, of curves of a room, as an axis label."""
    text, symbol = WORDS.get(f"{room}.{name}") or WORDS.get(
        name, (name.rsplit(".", 1)[-1].replace("_", " "), "")
    )
    return f"{text} ${symbol}$" if symbol else text


def value_words(name: str, value: Any) -> str:
    """A facet as a title or a legend entry: "$N$ = 50", "square loss"; the formula of a facet
    called `target` is typeset.
    """
    if isinstance(value, str):
        return f"$y = {tex(value)}$" if name == "target" else value
    text, symbol = WORDS.get(name, (name.rsplit(".", 1)[-1].replace("_", " "), ""))
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

    Raises `ValueError` for what is no formula of names, numbers, + - * / ** and functions.
    """
    try:
        return _tex(ast.parse(formula, mode="eval").body, 0)
    except SyntaxError:
        raise ValueError(f"{formula!r} is no formula") from None


def _tex(node: ast.AST, around: int) -> str:
    """TeX of a part; `around` is the precedence of what stands about it: 1 sum, 2 product, 3
    denominator or sign, 4 power.
    """
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
    raise ValueError(f"{ast.unparse(node)!r} is no formula")


def _bracketed(text: str, needed: bool) -> str:
    return f"({text})" if needed else text
