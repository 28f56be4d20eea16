"""Image scraper for sphinx-gallery: saves every matplotlib Figure that a block of an example leaves in a variable."""

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape_figures(block, block_vars, gallery_conf):
    """Save the figures that are new since the last block.

    revarb's plot methods return figures that pyplot does not manage, so sphinx-gallery's own scraper does not see them.
    """
    scope = block_vars["example_globals"]
    known = scope.setdefault("_saved_figures", [])
    paths = []
    for value in list(scope.values()):
        if isinstance(value, Figure) and not any(value is figure for figure in known):
            known.append(value)
            path = next(block_vars["image_path_iterator"])
            value.savefig(path, dpi=120, bbox_inches="tight")
            paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])
