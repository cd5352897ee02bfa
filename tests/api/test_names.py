"""One name for one thing: no class, function or constant of the package is defined twice, in whatever room."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "privmeasure"

COMMANDS = {"synthesize", "evaluate"}
"""A command has the name of the function that it calls."""


def defined(path: Path) -> set[str]:
    """Return the names that a module itself gives to something; private ones are its own affair."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Assign(targets=targets):
                names |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def test_no_name_stands_for_two_things() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in defined(path):
            homes[name].append(str(path.relative_to(PACKAGE)))
    assert len(homes) > 500
    assert {name: where for name, where in homes.items() if len(where) > 1 and name not in COMMANDS} == {}
