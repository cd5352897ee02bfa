"""Texts of more than 2 GiB: one long cell must not decide whether a Parquet file can be read."""

import pyarrow as pa
import pyarrow.parquet as pq

from privmeasure.sources.files import open_table


def test_texts_that_no_dictionary_can_hold_are_read_all_the_same(tmp_path, monkeypatch):
    """The reader says here, as it does at 2 GiB, that a dictionary would be too large; the rest comes without one."""
    pq.write_table(pa.table({"sex": ["F", "M"] * 500}), tmp_path / "d.parquet", row_group_size=100)
    whole = pq.ParquetFile.iter_batches

    def limited(file, **options):
        for i, piece in enumerate(whole(file, **options | {"batch_size": 300})):
            if i and pa.types.is_dictionary(piece.schema.types[0]):
                raise pa.lib.ArrowCapacityError("array cannot contain more than 2147483646 bytes")
            yield piece

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", limited)
    batches = list(open_table(tmp_path / "d.parquet").batches(["sex"]))
    assert [str(cell) for batch in batches for cell in batch.column(0)] == ["F", "M"] * 500
    assert {str(batch.schema.types[0])[:6] for batch in batches} == {"string", "dictio"}
