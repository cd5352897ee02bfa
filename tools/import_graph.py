"""Who imports whom in a package, read from its source: every import statement, also inside functions."""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

Tree = dict[str, str]
"""Source text by module name; a package stands by its own name, for its __init__."""
COMPUTED = "a computed name"
"""Stands for the name of an import that is computed when the program runs."""


def read_tree(root: Path) -> Tree:
    """Return the source of every module of the package in a folder."""
    tree = {}
    for path in sorted(root.rglob("*.py")):
        parts = [root.name, *path.relative_to(root).with_suffix("").parts]
        tree[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return tree


@cache
def imports(text: str, module: str = "", is_package: bool = False) -> tuple[tuple[str, bool], ...]:
    """Return the full name of everything that a source text imports, and whether it does so at the top level."""
    parsed = ast.parse(text)
    top = set(map(id, parsed.body))
    found = []
    for node in ast.walk(parsed):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = module.split(".") + ([""] if is_package else [])
                base = ".".join([*here[: len(here) - node.level], *([base] if base else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            names = [COMPUTED] if called in ("import_module", "__import__") else []
        found += [(name, id(node) in top) for name in names]
    return tuple(found)


def packages_of(tree: Tree) -> set[str]:
    """Return the modules that have modules below them."""
    return {parent for name in tree if (parent := name.rpartition(".")[0])}


def resolve(tree: Tree, name: str) -> str | None:
    """Return the module of the tree that an imported name lives in: the name itself, its parent or the package."""
    if name in tree:
        return name
    parent, root = name.rpartition(".")[0], name.split(".")[0]
    return parent if parent in tree else (root if root in tree else None)


def graph(tree: Tree) -> dict[str, set[str]]:
    """Return what each module imports, and the packages above these, because their __init__ runs as well.

    The root package, and those that a module lies in, run anyway: they count only if they are named.
    """
    return _graph(tuple(tree.items()))


@cache
def _graph(modules: tuple[tuple[str, str], ...]) -> dict[str, set[str]]:
    """Return the graph of some modules and their texts; all who ask for the same tree share it."""
    tree = dict(modules)
    packages = packages_of(tree)
    inner = {package for package in packages if "." in package}
    edges = {}
    for module, text in tree.items():
        named = imports(text, module, module in packages)
        targets = {target for name, _ in named if (target := resolve(tree, name))}
        above = {package for package in inner for target in targets if target.startswith(package + ".")}
        edges[module] = (targets | {package for package in above if not module.startswith(package + ".")}) - {module}
    return edges


def reachable(edges: dict[str, set[str]], starts: Iterable[str]) -> set[str]:
    """Return everything that the imports of some modules lead to; the modules themselves only if a way leads back."""
    seen: set[str] = set()
    stack = list(starts)
    while stack:
        for target in edges[stack.pop()] - seen:
            seen.add(target)
            stack.append(target)
    return seen
