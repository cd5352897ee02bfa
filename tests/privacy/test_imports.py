"""The privacy argument in the tree of files: who may import whom.

Everything before the mechanism is private, everything after it is public; the direction of imports draws that line.
The rules read the source (every import statement, also inside functions), not what happens to be loaded. Each rule is
also shown a small tree that breaks it.
"""

from functools import cache
from pathlib import Path

import pytest
from import_graph import COMPUTED, Tree, graph, imports, reachable, read_tree

import privmeasure

PACKAGE = "privmeasure"

LAYERS = [
    {
        "errors",
        "accounting",
        "privacy",
        "threads",
        "compiled",
        "version",
        "origin",
        "outputs",
        "extras",
        "rounding",
        "spending",
        "notebook",
        "hints",
    },
    {"domains"},
    {"transport", "noise", "conditions"},
    {"estimates", "model"},
    {"plans"},
    {"tables", "counts"},
    {"sources", "releases"},
    {"mechanisms", "metrics", "testing"},
    {"synthesizer", "ledger", "evaluation", "typical"},
    {"report", "cli", "public", "theory", "app"},
]
"""A room may import rooms of its own layer or below. A new room must be given a layer here."""

STRANGERS = [
    ("counts", "tables"),
    ("counts", "releases"),
    ("sources", "releases"),
    ("mechanisms", "metrics"),
    ("mechanisms", "sources"),
    ("mechanisms", "tables"),
    ("mechanisms", "testing"),
    ("metrics", "sources"),
    ("metrics", "releases"),
    ("metrics", "testing"),
    ("testing", "sources"),
]
"""Rooms that do not know each other, in either direction, whatever their layers."""

PUBLIC = [
    "errors",
    "accounting",
    "privacy",
    "threads",
    "compiled",
    "version",
    "origin",
    "outputs",
    "extras",
    "rounding",
    "spending",
    "notebook",
    "hints",
    "theory",
    "domains",
    "transport",
    "noise",
    "conditions",
    "estimates",
    "model",
    "plans",
    "tables",
    "releases",
    "ledger",
    "cli.sample",
    "cli.inspect",
    "cli.preparing",
    "report.public",
    "report.planning",
    "report.plots",
    "app",
    "testing.domains",
    "testing.columns",
    "testing.hostile",
]
PRIVATE = ["counts", "sources", "mechanisms", "metrics"]
"""Public rooms cannot reach these, however many imports it would take."""

DOORS = {
    "noise.draws": ["mechanisms", "plans.complexity"],
    "noise.laplace": ["noise.draws"],
    "noise.gaussian": ["noise.draws", "noise.normal"],
    "noise.normal": ["noise.signs"],
    "noise.signs": ["mechanisms"],
    "noise.tables": ["noise.laplace", "noise.gaussian", "noise.normal", "noise.signs", "mechanisms.exponential"],
    "noise.entropy": [
        "mechanisms",
        "synthesizer",
        "typical",
        "noise.laplace",
        "noise.gaussian",
        "noise.normal",
        "noise.signs",
        "noise.tables",
        "plans.complexity",
    ],
    "sources.files": ["sources", "synthesizer", "evaluation", "cli"],
}
"""Who may import the noise: only the gate draws it on counts (`plans.complexity` simulates it, without any), only the
gate and those that call it make keys: the facade, and `typical`, which runs it on released rows. And who may open files
of rows."""

HEAVY = {"pyspark": 2, "matplotlib": 1, "ortools": 1, "duckdb": 1, "psycopg": 1}
"""Each in at most so many modules, inside the function that needs it: Spark counts in one and draws in another."""


def room(module: str) -> str:
    """Return the room of a module: the first name below the package, or nothing for the package itself."""
    return [*module.split("."), ""][1]


def inside(module: str, place: str) -> bool:
    return module == f"{PACKAGE}.{place}" or module.startswith(f"{PACKAGE}.{place}.")


# ------------------------------------------------------------------------------------------------- the rules


def layer_order(tree: Tree) -> list[str]:
    """Nobody imports from above, and rooms that must not know each other do not."""
    rank = {name: i for i, names in enumerate(LAYERS) for name in names}
    strangers = set(STRANGERS) | {(b, a) for a, b in STRANGERS}
    wrong = []
    for module, targets in graph(tree).items():
        here = room(module)
        if here and here not in rank:
            wrong.append(f"{module}: the room {here} has no layer")
            continue
        for target in targets:
            there = room(target)
            if not here or here == there:
                continue
            if not there:
                wrong.append(f"{module} imports the whole package")
            elif rank.get(there, -1) > rank[here] or (here, there) in strangers:
                wrong.append(f"{module} imports {target}")
    return wrong


def no_cycles(tree: Tree) -> list[str]:
    """No module reaches itself; a package's own __init__ may gather its modules, which do not import it."""
    edges = graph(tree)
    return [f"{module} reaches itself" for module in tree if module in reachable(edges, [module])]


def public_rooms_cannot_reach_data(tree: Tree) -> list[str]:
    """Privacy rule 1: what anyone may see is made without counts, engines or comparisons with the data."""
    edges = graph(tree)
    return [
        f"{module} reaches {target}"
        for module in tree
        if any(inside(module, place) for place in PUBLIC)
        for target in reachable(edges, [module])
        if any(inside(target, place) for place in PRIVATE)
    ]


def noise_has_few_doors(tree: Tree) -> list[str]:
    """Privacy rule 2: noise is drawn in the gate only, and keys are made by the gate and its caller only."""
    return [
        f"{module} imports {target}"
        for module, targets in graph(tree).items()
        for target in targets
        for door, allowed in DOORS.items()
        if inside(target, door) and not inside(module, door) and not any(inside(module, place) for place in allowed)
    ]


def heavy_libraries_stay_inside(tree: Tree) -> list[str]:
    """Privacy rule 3: a heavy library is imported by few modules, inside a function; names are never computed."""
    wrong, users = [], {}
    for module, text in tree.items():
        for name, top in imports(text, module):
            library = name.split(".")[0]
            if name == COMPUTED:
                wrong.append(f"{module} computes the name of an import")
            elif library in HEAVY:
                users.setdefault(library, set()).add(module)
                if top:
                    wrong.append(f"{module} imports {library} at the top")
    return wrong + [
        f"{library} is imported by {sorted(who)}" for library, who in users.items() if len(who) > HEAVY[library]
    ]


RULES = [layer_order, no_cycles, public_rooms_cannot_reach_data, noise_has_few_doors, heavy_libraries_stay_inside]

# ------------------------------------------------------------------------------------------------- they hold


@cache
def the_package() -> Tree:
    return read_tree(Path(privmeasure.__file__).parent)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_obeys(rule):
    tree = the_package()
    assert len(tree) > 20
    assert rule(tree) == []


def test_the_edges_are_really_seen():
    edges = graph(the_package())
    assert f"{PACKAGE}.noise.draws" in edges[f"{PACKAGE}.mechanisms.tree"]
    assert f"{PACKAGE}.domains" in edges[f"{PACKAGE}.releases.cells"]  # from privmeasure import domains
    assert f"{PACKAGE}.counts" in reachable(edges, [f"{PACKAGE}.synthesizer"])
    assert f"{PACKAGE}.counts" not in reachable(edges, [f"{PACKAGE}.releases.cells"])


# ------------------------------------------------------------------------------------------------- they can fail


def crafted(**sources: str) -> Tree:
    """Return a small tree that obeys, changed as told ("noise_laplace" stands for noise.laplace)."""
    rooms = ["errors", "privacy", "plans", "domains", "tables", "counts", "releases", "testing", "synthesizer"]
    rooms += ["noise", "noise.entropy", "noise.laplace", "noise.draws", "mechanisms", "mechanisms.pmm"]
    rooms += ["sources", "sources.arrays", "metrics", "report", "report.public", "report.plots", "cli"]
    tree = {f"{PACKAGE}.{name}": "" for name in rooms} | {PACKAGE: "from privmeasure.synthesizer import Synthesizer"}
    tree[f"{PACKAGE}.mechanisms.pmm"] = "from privmeasure.noise.draws import law_of\nfrom ..counts import Source"
    tree[f"{PACKAGE}.noise.laplace"] = "from .entropy import Key"
    tree[f"{PACKAGE}.noise.draws"] = "from .laplace import discrete_laplace"
    tree[f"{PACKAGE}.sources.arrays"] = "from privmeasure import counts"
    tree[f"{PACKAGE}.report.plots"] = "def draw():\n    import matplotlib.pyplot"
    return tree | {f"{PACKAGE}.{name.replace('_', '.')}": source for name, source in sources.items()}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_crafted_tree_obeys(rule):
    assert rule(crafted()) == []


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        (layer_order, {"domains": "from privmeasure.counts import CellCounts"}),
        (layer_order, {"privacy": "import privmeasure.plans.plan"}),
        (layer_order, {"counts": "def f():\n    from privmeasure.releases import CellMeasure"}),
        (layer_order, {"releases": "from . import counts"}),
        (layer_order, {"mechanisms_pmm": "from privmeasure.sources import arrays"}),
        (layer_order, {"sources_arrays": "from ..mechanisms.pmm import PMM"}),
        (layer_order, {"mechanisms_pmm": "import privmeasure"}),
        (layer_order, {"plans": "import privmeasure as pm"}),
        (layer_order, {"utils": ""}),
        (no_cycles, {"plans": "from privmeasure import domains", "domains": "from privmeasure.plans import Plan"}),
        (no_cycles, {"noise_entropy": "from privmeasure.noise.laplace import draw"}),
        (public_rooms_cannot_reach_data, {"releases": "from privmeasure.counts import CellCounts"}),
        (public_rooms_cannot_reach_data, {"releases": "if TYPE_CHECKING:\n    from .counts import Source"}),
        (public_rooms_cannot_reach_data, {"tables": "def f():\n    import privmeasure.sources.arrays"}),
        (public_rooms_cannot_reach_data, {"plans": "from . import metrics"}),
        (public_rooms_cannot_reach_data, {"domains": "from .mechanisms.pmm import PMM"}),  # two steps away
        (public_rooms_cannot_reach_data, {"testing_columns": "from privmeasure.synthesizer import Synthesizer",
                                          "synthesizer": "from privmeasure.sources.arrays import ArraySource"}),
        (public_rooms_cannot_reach_data, {"report_public": "import privmeasure.metrics as m"}),
        (public_rooms_cannot_reach_data, {"plans": "from .mechanisms.recipe import Recipe", "mechanisms_recipe": "",
                                          "mechanisms": "from privmeasure.mechanisms.pmm import PMM"}),  # by __init__
        (noise_has_few_doors, {"synthesizer": "from privmeasure.noise.laplace import discrete_laplace"}),
        (noise_has_few_doors, {"synthesizer": "from privmeasure.noise.draws import law_of"}),
        (noise_has_few_doors, {"sources_arrays": "from privmeasure.noise import laplace"}),
        (noise_has_few_doors, {"mechanisms_pmm": "from privmeasure.noise import laplace"}),
        (noise_has_few_doors, {"releases": "from privmeasure.noise.entropy import Key"}),
        (noise_has_few_doors, {"cli": "import privmeasure.noise.entropy"}),
        (heavy_libraries_stay_inside, {"report_plots": "import matplotlib.pyplot as plt"}),
        (heavy_libraries_stay_inside, {"cli": "def f():\n    from matplotlib import pyplot"}),
        (heavy_libraries_stay_inside, {"releases": "import importlib\ncounts = importlib.import_module(name)"}),
        (heavy_libraries_stay_inside, {"releases": "counts = __import__('privmeasure.counts')"}),
    ],
)  # fmt: skip
def test_each_rule_rejects(rule, change):
    assert rule(crafted(**change)) != []
