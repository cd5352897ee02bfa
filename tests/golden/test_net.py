"""Everything that the configurations of `net.py` release is what it was: a rewrite changes nothing here.

A change of releases that is meant renews the net (`make golden`) in a commit that does nothing else.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from golden.net import NET, Configuration, configurations, released
from privmeasure.mechanisms import tree
from privmeasure.plans import schedule

TESTS = str(Path(__file__).parents[1])
GROUPS = ["add-remove: line", "add-remove: s", "add-remove", "replace: line", "replace: s", "replace", "table"]
"""Beginnings of names: each configuration belongs to the first that fits, so that several processes share the work."""


@cache
def every() -> tuple[Configuration, ...]:
    return tuple(configurations())


def group_of(name: str) -> str:
    return next(group for group in GROUPS if name.startswith(group))


def changes(names: set[str]) -> dict[str, list[str]]:
    """Return which parts of what is released differ from the net, for each configuration where any does."""
    stored, found = json.loads(NET.read_text(encoding="utf-8")), {}
    for configuration in every():
        if configuration.name in names:
            now, then = released(configuration), stored[configuration.name]
            exact = [part for part in ("bins", "masses", "pairs", "rows") if now[part] != then[part]]
            numbers = [part for part in ("plan", "guarantees") if now[part] != pytest.approx(then[part], rel=2e-9)]
            if exact or numbers:
                found[configuration.name] = exact + numbers
    return found


def test_the_net_lists_every_configuration_once():
    names = [configuration.name for configuration in every()]
    assert len(names) == len(set(names)) == 351
    assert set(names) == set(json.loads(NET.read_text(encoding="utf-8")))
    assert {group_of(name) for name in names} == set(GROUPS)


@pytest.mark.parametrize("group", GROUPS)
def test_everything_released_is_what_it_was(group):
    assert changes({c.name for c in every() if group_of(c.name) == group}) == {}


SOME = {f"{relation}: {what}" for relation in ("add-remove", "replace") for what in ("line: default", "ages: paper")}


def test_a_changed_constant_alters_the_configurations_that_use_it(monkeypatch):
    """The share of the first noisy number of rows: of the default under "add-remove" alone."""
    monkeypatch.setattr(schedule, "CHEAP_ROOT_SHARE", schedule.CHEAP_ROOT_SHARE / 2)
    found = changes(SOME)
    assert set(found) == {"add-remove: line: default"}
    assert {"masses", "plan"} <= set(found["add-remove: line: default"])


def test_a_changed_order_of_draws_alters_every_release_with_noise(monkeypatch):
    real = tree.add_noise
    monkeypatch.setattr(tree, "add_noise", lambda counts, level, *rest: real(counts[::-1], level, *rest)[::-1])
    found = changes({*SOME, "replace: constant columns"})
    assert set(found) == SOME
    assert all("masses" in parts and "plan" not in parts for name, parts in found.items() if name.startswith("replace"))


KERNELS = ("Prescott", "Haswell")
"""Processors for which OpenBLAS adds in different orders: without AVX, and with it."""
FRAGILE = ("table: wide with a delta", "replace: columns, delta 1e-05, target")
"""Configurations in which an estimate lies so close to a border that the order of a sum once changed the release."""
ELSEWHERE = """
import json, sys
from golden.net import configurations, released
print(json.dumps({c.name: released(c) for c in configurations() if c.name in sys.argv[1:]}))
"""


@pytest.mark.parametrize("kernel", KERNELS)
def test_releases_are_the_same_with_the_kernels_of_another_processor(kernel):
    stored = json.loads(NET.read_text(encoding="utf-8"))
    environment = os.environ | {"OPENBLAS_CORETYPE": kernel, "PYTHONPATH": os.pathsep.join([TESTS, *sys.path])}
    command = [sys.executable, "-c", ELSEWHERE, *FRAGILE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    there = json.loads(done.stdout)
    parts = ("bins", "masses", "pairs", "rows")
    assert [{part: there[name][part] for part in parts} for name in FRAGILE] == [
        {part: stored[name][part] for part in parts} for name in FRAGILE
    ]
