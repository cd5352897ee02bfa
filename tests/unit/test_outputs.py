"""One check of the place of a file, and no half file beside it."""

import os
from pathlib import Path

import pytest

from privmeasure.outputs import check_place, part_beside


def test_a_place_is_refused_for_one_reason_each(tmp_path, monkeypatch):
    (tmp_path / "there").write_text("old")
    check_place(tmp_path / "new", overwrite=False)
    check_place(tmp_path / "there", overwrite=True)
    with pytest.raises(FileExistsError, match="not overwritten"):
        check_place(tmp_path / "there", overwrite=False)
    with pytest.raises(FileExistsError, match=r"there\. Really\?"):
        check_place(tmp_path / "there", overwrite=False, taken="{path}. Really?")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_place(tmp_path, overwrite=True)
    with pytest.raises(FileNotFoundError, match="does not exist: create it"):
        check_place(tmp_path / "no" / "new", overwrite=False)
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(PermissionError, match="no permission to write into the folder"):
        check_place(tmp_path / "new", overwrite=False)
    with pytest.raises(PermissionError, match=rf"^{tmp_path}: no\.$"):
        check_place(tmp_path / "{odd}", overwrite=False, closed="{path.parent}: no.")


@pytest.mark.parametrize("fault", [None, OSError, KeyboardInterrupt])
def test_what_is_beside_is_renamed_or_goes(tmp_path: Path, fault):
    try:
        with part_beside(tmp_path / "file") as part:
            part.write_text("new")
            if fault is not None:
                raise fault
            part.replace(tmp_path / "file")
    except (OSError, KeyboardInterrupt):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ([] if fault else ["file"])
