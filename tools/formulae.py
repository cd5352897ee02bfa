"""Formulae as the pages write them, in letters of any keyboard, set as formulae in the built pages.

Pages keep `E W1 <= (1/n) sum_j sqrt(V_j)` as it is, so that it reads well in a file and in a diff. Here letters become
Greek, `_` and `^` lower and raise what follows. No script and no font has to be fetched for it.
"""

import html
import re

GREEK = {
    "alpha": "α", "beta": "β", "delta": "δ", "Delta": "Δ", "epsilon": "ε", "lambda": "λ", "mu": "μ", "nu": "ν",
    "phi": "φ", "Phi": "Φ", "pi": "π", "rho": "ρ", "sigma": "σ", "xi": "ξ",
}  # fmt: skip
SIGNS = {"&lt;=": "≤", "&gt;=": "≥", "!=": "≠", "infinity": "∞"}
WORDS = re.compile(rf"(?<![A-Za-z])({'|'.join(GREEK)})(?![A-Za-z])")
RAISED = re.compile(
    r"\^(\{[^{}]*\}|\((?:[^()]|\([^()]*\))*\)|-?\([^()]*\)|max\([^()]*\)|\|\w\||-\w+_\w|-?[A-Za-z0-9ε]+)"
)
LOWERED = re.compile(r"(?<=[\w)∑|'’>])_(\{[^{}]*\}|\([^()]*\)|-?[A-Za-z0-9∞]+|[-+](?![\w(]))")
FILES = re.compile(r"(\S*\.(?:py|md)\b)")


def typeset(text: str, *, block: bool = False) -> str:
    """Return a text as HTML, its formulae set; in a `block` every minus and every sum is one of a formula.

    Examples:
        >>> typeset("sigma_j = D/a_j, Delta_-1 <= 2^-c_j sqrt(2/pi)")
        'σ<sub>j</sub> = D/a<sub>j</sub>, Δ<sub>-1</sub> ≤ 2<sup>-c<sub>j</sub></sup> √(2/π)'
        >>> typeset("sum_(j>=1) sigma_j - (epsilon n)^(-1/d)", block=True)
        '∑<sub>j≥1</sub> σ<sub>j</sub> − (ε n)<sup>−1/d</sup>'
        >>> typeset("the sum of l_infinity norms, m_- and m_+")
        'the sum of l<sub>∞</sub> norms, m<sub>-</sub> and m<sub>+</sub>'
        >>> typeset("|m^j|_1 of y^j_c, see test_kept.py")
        '|m<sup>j</sup>|<sub>1</sub> of y<sup>j</sup><sub>c</sub>, see test_kept.py'
    """
    pieces = FILES.split(text)  # names of files are no formulae
    return "".join(html.escape(x, quote=False) if i % 2 else _set(x, block) for i, x in enumerate(pieces))


def _set(text: str, block: bool) -> str:
    text = html.escape(text, quote=False)
    for sign, letter in SIGNS.items():
        text = text.replace(sign, letter)
    text = re.sub(r"\bsqrt ?(?=[\d(])|\bsqrt\b", "√", text)
    text = re.sub(r"\bsum(?=_)" + (r"|\bsum(?= [A-Z(])" if block else ""), "∑", text)
    text = WORDS.sub(lambda word: GREEK[word[1]], re.sub(r"(?<![A-Za-z])(\w+?)_(?=\w)", _apart, text))
    if block:
        text = re.sub(r"(?<=[\s(^])-(?=[\s\w(])", "−", text).replace("^−", "^-")
    text = RAISED.sub(lambda found: f"<sup>{_bare(found[1])}</sup>", text)
    return LOWERED.sub(lambda found: f"<sub>{_bare(found[1])}</sub>", text)


def _apart(name: re.Match[str]) -> str:
    return f"{GREEK.get(name[1], name[1])}_"


def _bare(text: str) -> str:
    """Return what is lowered or raised without the brackets that hold it together."""
    return text[1:-1] if text[0] + text[-1] in {"()", "{}"} else text
