"""The map in ARCHITECTURE.md is the tree of files: no module is missing from it, none on it is gone."""

import re
from pathlib import Path

import privmeasure

PACKAGE = Path(privmeasure.__file__).parent
MAP = Path(__file__).parents[2] / "ARCHITECTURE.md"


def on_the_map(text):
    """Return the modules of every room on the map; what stands in brackets explains."""
    block = re.search(r"## Rooms.*?```\n(.*?)```", text, re.S)[1]
    rooms, room = {}, None
    for line in block.splitlines():
        if not line.startswith(" "):
            room = line.split()[0].strip("()/").replace("top", "")
            rooms[room] = set()
        else:
            rooms[room] |= set(re.findall(r"\w+", re.sub(r"\([^)]*\)|\[.\]", " ", line)))
    return rooms


def in_the_tree():
    rooms = {}
    for path in PACKAGE.rglob("*.py"):
        if path.stem != "__init__":
            room = path.parent.relative_to(PACKAGE).as_posix()
            rooms.setdefault("" if room == "." else room, set()).add(path.stem)
    return rooms


def test_every_module_is_on_the_map_and_every_name_on_it_is_a_module():
    assert on_the_map(MAP.read_text(encoding="utf-8")) == in_the_tree()


def test_every_file_that_is_named_exists():
    text = MAP.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+(?:\.py)?)`", text):
        root = PACKAGE if (PACKAGE / name.split("/")[0]).exists() else MAP.parent
        assert any((root / (name + end)).exists() for end in ("", ".py")), name


def test_the_map_can_be_wrong():
    text = MAP.read_text(encoding="utf-8")
    assert on_the_map(text.replace("  drawing", "")) != in_the_tree()
    assert on_the_map(text.replace("  drawing", "  drawing  dreaming")) != in_the_tree()
