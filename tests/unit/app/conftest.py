"""Pages for the tests of this room."""

import pytest

from unit.app.visitors import visiting, write_people


@pytest.fixture
def page():
    """A page, and a visitor who is in."""
    with visiting() as visitor:
        assert visitor.enter().status == 303
        yield visitor


@pytest.fixture
def people(tmp_path):
    """A table with secrets in it."""
    return write_people(tmp_path / "people.csv")
