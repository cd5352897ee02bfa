"""Sheets of xlsx files as XML, as no library would write them: for tests of what reads them."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
PLAIN, DATE, DURATION = 0, 1, 2
"""Styles of cells."""
STYLES = (
    f'<styleSheet xmlns="{MAIN}"><numFmts count="1"><numFmt numFmtId="164" formatCode="[h]:mm:ss"/></numFmts>'
    '<fonts count="1"><font/></fonts><fills count="1"><fill><patternFill/></fill></fills>'
    '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
    '<cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/>'
    '<xf numFmtId="164"/></cellXfs></styleSheet>'
)


def cell(value: object, place: str = "", **attributes: object) -> str:
    """Return a cell as XML: a number, unless attributes say otherwise (t: its type, s: its style)."""
    given = {"r": place} if place else {}
    told = "".join(f' {name}="{said}"' for name, said in (given | attributes).items())
    return f"<c{told}><v>{value}</v></c>"


def row(*cells: str, number: object = "") -> str:
    """Return a row as XML."""
    return f'<row r="{number}">{"".join(cells)}</row>' if number != "" else f"<row>{''.join(cells)}</row>"


def parts_of(rows: Sequence[str], texts: Sequence[str], styles: str = STYLES) -> dict[str, str]:
    """Return the files inside an xlsx file with one sheet."""
    shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
    names = {"worksheets/sheet1": "worksheet", "sharedStrings": "sharedStrings", "styles": "styles"}
    inner = "".join(
        f'<Override PartName="/xl/{name}.xml" ContentType="{TYPES}.{kind}+xml"/>' for name, kind in names.items()
    )
    links = "".join(
        f'<Relationship Id="rId{i}" Type="{OFFICE}/{kind}" Target="{name}.xml"/>'
        for i, (name, kind) in enumerate(names.items(), 1)
    )
    return {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        f'ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{TYPES}.sheet.main+xml"/>'
        f"{inner}</Types>",
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        '<sheet name="rows" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>',
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{shared}</sst>',
        "xl/styles.xml": styles,
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{MAIN}"><dimension ref="A1"/>'
        f"<sheetData>{''.join(rows)}</sheetData></worksheet>",
    }


def write_parts(path: Path, parts: dict[str, str]) -> Path:
    """Write the files of an xlsx file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name, text)
    return path
