"""Math renderer for Sphinx that writes MathML while building, so that pages need no JavaScript and no network."""

import re

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)

TAG = re.compile(r"\\tag\{(\w+)\}")
CLOSING = re.compile(r"\\([bB]igg?)\s*(\)|\]|\\rangle|\\})")
OPENING = re.compile(r"\\([bB]igg?)(?![A-Za-z])")
SYNONYMS = {r"\dots": r"\ldots", r"\gt": ">", r"\lt": "<"}


def setup(app):
    """Register the renderer under the name `mathml`."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def visit_inline(writer, node):
    """Write inline math."""
    writer.body.append(to_mathml(node.astext(), node))
    raise nodes.SkipNode


def visit_block(writer, node):
    """Write displayed math, with the number of its `\\tag` on the right."""
    code = node.astext()
    tag = TAG.search(code)
    formula = to_mathml(TAG.sub("", code).strip(), node, as_block=True)
    number = f'<a class="equation-number" href="#eq-{tag[1]}">({tag[1]})</a>' if tag else ""
    anchor = f' id="eq-{tag[1]}"' if tag else ""
    writer.body.append(f'<div class="equation"{anchor}><div class="formula">{formula}</div>{number}</div>\n')
    raise nodes.SkipNode


def to_mathml(code, node, as_block=False):
    """Convert LaTeX to MathML; a formula that docutils cannot convert is a warning."""
    code = CLOSING.sub(r"\\\1r\2", code)
    code = OPENING.sub(r"\\\1l", code)
    for command, replacement in SYNONYMS.items():
        code = re.sub(re.escape(command) + r"(?![A-Za-z])", lambda _, r=replacement: r, code)
    try:
        return latex2mathml.tex2mathml(code, as_block=as_block)
    except MathError as error:
        logger.warning("cannot convert to MathML: %s: %s", error, code, location=node)
        return f"<code>{nodes.unescape(code)}</code>"
