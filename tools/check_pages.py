"""Check the built pages of a folder: every local link, picture and anchor in them leads somewhere."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page and the names that links may lead to."""

    def __init__(self, text: str) -> None:
        """Read the page."""
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what leads somewhere, and what can be led to."""
        for name, value in attrs:
            if name in {"href", "src"} and value:
                self.links.append(value)
            elif (name == "id" or (tag == "a" and name == "name")) and value:
                self.names.add(value)


def broken(folder: Path) -> list[str]:
    """Return the links of a folder of pages that lead nowhere, each with its page."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            name = unquote(parts.fragment)
            if not target.is_file() or (name and target in pages and name not in pages[target].names):
                found.append(f"{path.relative_to(folder.resolve())}: {link}")
    if not pages:
        found.append(f"{folder} has no pages")
    return found


if __name__ == "__main__":
    wrong = broken(Path(sys.argv[1]))
    print("\n".join(wrong) if wrong else "every local link leads somewhere")
    sys.exit(bool(wrong))
