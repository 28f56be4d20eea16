"""Sphinx configuration: `make docs` builds the site into build/docs."""

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS / "_ext")]
os.environ.setdefault("MPLBACKEND", "agg")

project = "revarb"
author = "The revarb developers"
copyright = "The revarb developers"
release = version = installed_version("revarb")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "results_directives",
    "package_matrix",
    "cli_reference",
    "console",
]
exclude_patterns = ["gallery/*", "**/README.md"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}

# Markdown
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 4
smartquotes_action = "qe"  # quotes and ellipses; two dashes are an option of a command
html_math_renderer = "mathml"  # rendered while building: the pages load nothing from the network

# API reference
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": "tuple, object, Generic, ABC"}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("figure_scraper.scrape_figures",),
    "capture_repr": ("_repr_html_",),
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 0,
    "copyfile_regex": r".*\.csv",
}

# Look
html_theme = "furo"
html_title = f"revarb {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7db8de", "color-brand-content": "#7db8de"},
}


def skip_foreign(app, what, name, value, skip, options):
    """Leave out what the adapters inherit from scikit-learn and sktime, whose own pages document it."""
    origin = getattr(getattr(value, "fget", value), "__module__", None) or ""
    return True if origin.partition(".")[0] in ("sklearn", "sktime", "skbase") else None


def setup(app):
    """Connect the choice of members."""
    app.connect("autodoc-skip-member", skip_foreign)
