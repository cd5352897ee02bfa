"""How Sphinx makes the pages: `make docs`. Pages are Markdown that reads as well where it lies; see CONTRIBUTING.md."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

from docs_extension import connect  # noqa: E402

from privmeasure.version import __version__  # noqa: E402

project = "privmeasure"
author = "The privmeasure authors"
project_copyright = "%Y, the privmeasure authors. Apache-2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
highlight_language = "none"
pygments_style, pygments_dark_style = "friendly", "github-dark"
default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"privmeasure {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False


def setup(app):
    """Connect what a Markdown page needs beyond Sphinx."""
    connect(app, DOCS)
    return {"parallel_read_safe": True}
