"""Math renderer for Sphinx that writes MathML while building, so that pages need no JavaScript and no network."""

import re
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)

TAG = re.compile(r"\\tag\{(\w+)\}")
CLOSING = re.compile(r"\\([bB]igg?)\s*(\)|\]|\\rangle|\\})")
OPENING = re.compile(r"\\([bB]igg?)(?![A-Za-z])")
SYNONYMS = {r"\dots": r"\ldots", r"\gt": ">", r"\lt": "<"}
FRACTION = re.compile(r"\\(t?frac)(\d)(\d|[A-Za-z](?![A-Za-z])|(?=\{))")
SPACE = "http://www.w3.org/1998/Math/MathML"
FENCES = {"|", "‖", "⟨", "⟩"}
ACCENTS = {"ˆ", "ˉ", "^", "¯", "‾"}
OPERATOR = re.compile(r"(\\(?:log|cos|sin)|\\mathrm\{diag\})\s+(?=[\w\\])(?!\\[bB]ig|\\left)")
FUNCTION = re.compile(r"(?<=[\w})])\s*\\(exp|log|cos|sin)(?![A-Za-z])")


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
    code = FRACTION.sub(lambda found: rf"\{found[1]}{{{found[2]}}}" + (f"{{{found[3]}}}" if found[3] else ""), code)
    code = FUNCTION.sub(r"\\,\\\1", code)
    code = OPERATOR.sub(r"\1\\,", code)
    code = CLOSING.sub(r"\\\1r\2", code)
    code = OPENING.sub(r"\\\1l", code)
    for command, replacement in SYNONYMS.items():
        code = re.sub(re.escape(command) + r"(?![A-Za-z])", lambda _, r=replacement: r, code)
    try:
        return _place_indices(latex2mathml.tex2mathml(code, as_block=as_block))
    except MathError as error:
        logger.warning("cannot convert to MathML: %s: %s", error, code, location=node)
        return f"<code>{nodes.unescape(code)}</code>"


def _place_indices(mathml):
    # Repairs of docutils' output for browsers. It puts the index of an accented letter below it (x̂_i is a <munderover>
    # of x, i and ˆ), where it belongs to the right; and it stretches fences that have an exponent on one side only.
    ElementTree.register_namespace("", SPACE)
    root = ElementTree.fromstring(mathml.replace("&ApplyFunction;", "\u2061"))
    for parent in list(root.iter()):
        for position, child in enumerate(list(parent)):
            if child.tag == f"{{{SPACE}}}munderover" and (child[2].text or "").strip() in ACCENTS:
                parent[position] = _indexed(*child, tail=child.tail)
        if parent.tag == f"{{{SPACE}}}msup" and parent[0].get("accented"):
            (base, index), power = list(parent[0]), parent[1]
            parent.tag = f"{{{SPACE}}}msubsup"
            parent[:] = [base, index, power]
    for element in root.iter():
        element.attrib.pop("accented", None)
        if element.get("class") == "ams-align":
            element.set("displaystyle", "true")
        if (element.text or "").strip() in FENCES and "minsize" not in element.attrib:
            element.set("stretchy", "false")
            if element.text.strip() in "|‖":
                element.attrib |= {"lspace": "0", "rspace": "0"}
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _indexed(letter, index, accent, tail):
    outer = ElementTree.Element(f"{{{SPACE}}}msub", accented="yes")
    outer.tail = tail
    inner = ElementTree.SubElement(outer, f"{{{SPACE}}}mover", accent="true")
    inner[:] = [letter, accent]
    outer.append(index)
    return outer
