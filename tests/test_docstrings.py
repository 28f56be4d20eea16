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
    for name in dict.fromkeys(name for base in bases for name in vars(base)):
        member = inspect.getattr_static(cls, name)
        if name.startswith("_") or isinstance(member, type):
            continue
        if callable(member) or isinstance(member, property | classmethod | staticmethod):
            yield name, member


def has_section(doc, title):
    return re.search(rf"^{title}\n-+$", doc, re.MULTILINE) is not None


def problems_of_function(function, doc):
    """Rule 2. `function` is bound, or its first parameter is `self`."""
    signature = inspect.signature(function)
    if REFERENCE.search(doc):
        return
    if set(signature.parameters) - {"self"} and not has_section(doc, "Parameters"):
        yield 'no "Parameters"'
    if signature.return_annotation not in (None, "None", inspect.Signature.empty) and not has_section(doc, "Returns"):
        yield 'no "Returns"'


def problems_of_member(cls, name, member):
    doc = inspect.getdoc(getattr(cls, name))
    if not doc:
        yield "no docstring"
    elif not isinstance(member, property):
        yield from problems_of_function(getattr(cls, name), doc)


def problems_of_value(value):
    doc = inspect.cleandoc(value.__doc__ or "")
    if not doc:
        yield "no docstring"
    elif isinstance(value, type):
        if not issubclass(value, Exception | tuple) and not has_section(doc, "Examples"):
            yield 'no "Examples"'
    elif not isinstance(value, ModuleType):
        yield from problems_of_function(value, doc)
        if not has_section(doc, "Examples"):
            yield 'no "Examples"'


PUBLIC = {name: getattr(revarb, name) for name in revarb.__all__}
MEMBERS = {
    f"{class_name}.{name}": (cls, name, member)
    for class_name, cls in PUBLIC.items()
    if isinstance(cls, type)
    for name, member in public_members(cls)
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names(name):
    assert list(problems_of_value(PUBLIC[name])) == []


@pytest.mark.parametrize("name", MEMBERS)
def test_methods_and_properties(name):
    assert list(problems_of_member(*MEMBERS[name])) == []


def test_the_rules_find_what_is_missing():
    class Example:
        def undocumented(self): ...

        def method(self, x) -> int:
            """Do something."""

        def other(self, x) -> int:
            """Do something; as in `method`."""

        @property
        def value(self) -> int:
            """A number."""

    Example.__module__ = "revarb.example"
    members = dict(public_members(Example))
    assert list(members) == ["undocumented", "method", "other", "value"]
    found = {name: list(problems_of_member(Example, name, member)) for name, member in members.items()}
    assert found == {
        "undocumented": ["no docstring"],
        "method": ['no "Parameters"', 'no "Returns"'],
        "other": [],
        "value": [],
    }
    assert list(problems_of_value(Example)) == ["no docstring"]
