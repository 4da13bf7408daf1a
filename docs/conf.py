"""How the site is built: Sphinx over the Markdown of this folder, the reference made by `generate`.

Everything it needs is in this repository and in `requirements-docs.lock`: no page loads a font, a
script or a picture from elsewhere, so that the site works without a network.
"""

# ruff: noqa: E402  (`generate` can be imported once this folder is on the path)
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from generate import write_pages
from generate.diagrams import Diagram
from generate.docstrings import as_restructured_text
from generate.results import Results
from generate.root_pages import relink
from sphinx.application import Sphinx

from semel import __version__

project = "Semel"
author = "Semel"
release = version = __version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "generate"]
nitpicky = False  # annotations name types of other packages; links between pages are all checked
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
# A name that both kinds of client have is linked to one of them: either explains it.
suppress_warnings = ["config.cache", "ref.python"]


def _colours(brand: str) -> dict[str, str]:
    names = ("color-brand-primary", "color-brand-content", "color-api-name", "color-api-pre-name")
    return dict.fromkeys(names, brand)


html_theme = "furo"
html_title = "Semel"
html_static_path = ["_static"]
html_css_files = ["semel.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "footer_icons": [],
    "light_css_variables": _colours("#0b6e4f"),
    "dark_css_variables": _colours("#5cc8a1"),
}

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# What the site's environment does not have, and our module that asks for numba's version.
autodoc_mock_imports = [
    *("numba", "numpy", "pandas", "py4j", "pyarrow", "pyspark"),
    "semel.columnar.kernels",
]
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
default_role = "code"


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", as_restructured_text)
    app.add_directive("mermaid", Diagram)
    app.add_directive("results", Results)
    app.connect("source-read", relink)
    write_pages(HERE)
