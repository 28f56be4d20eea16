"""Docstrings of the public interface: every public name has one, with the sections of numpydoc that it needs.

Public are the names in `revarb.__all__`, and the public methods and properties that the library defines for the
classes among them.

1. Everything has a docstring; modules and properties need no more.
2. A function or method with parameters has a section "Parameters", and one that returns a value a section "Returns".
   Instead of both, a docstring may refer to another one: "As in `…`" or "see `…`".
3. A class or function has a section "Examples". Methods, errors and named tuples may do without.
"""

import inspect
import re
from types import ModuleType

import pytest

import revarb

REFERENCE = re.compile(r"\b(as in|see) `", re.IGNORECASE)


def public_members(cls):
    """(name, member) of the public methods and properties of a class that are defined in revarb, inherited or not."""
    bases = [base for base in cls.__mro__ if base.__module__.startswith("revarb.")]
    for name in dict.fromkeys(name for base in bases for name in vars(base) if not name.startswith("_")):
        static, member = inspect.getattr_static(cls, name), getattr(cls, name)
        if isinstance(static, property) or (callable(member) and not isinstance(member, type)):
            yield name, member


def has_section(doc, title):
    return re.search(rf"^{title}\n-+$", doc, re.MULTILINE) is not None


def needed_sections(value, doc, is_member):
    """Rules 2 and 3. A method is bound, or its first parameter is `self`."""
    if not is_member and not (isinstance(value, type) and issubclass(value, Exception | tuple)):
        yield "Examples"
    if not isinstance(value, type) and not REFERENCE.search(doc):
        signature = inspect.signature(value)
        if set(signature.parameters) - {"self"}:
            yield "Parameters"
        if signature.return_annotation not in (None, "None", inspect.Signature.empty):
            yield "Returns"


def find_problems(value, is_member=False):
    doc = inspect.getdoc(value) if is_member else inspect.cleandoc(value.__doc__ or "")
    if not doc:
        return ["no docstring"]
    if isinstance(value, ModuleType | property):
        return []
    return [f'no "{title}"' for title in needed_sections(value, doc, is_member) if not has_section(doc, title)]


PUBLIC = {name: getattr(revarb, name) for name in revarb.__all__}
MEMBERS = {
    f"{class_name}.{name}": member
    for class_name, cls in PUBLIC.items()
    if isinstance(cls, type)
    for name, member in public_members(cls)
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names(name):
    assert find_problems(PUBLIC[name]) == []


@pytest.mark.parametrize("name", MEMBERS)
def test_methods_and_properties(name):
    assert find_problems(MEMBERS[name], is_member=True) == []
