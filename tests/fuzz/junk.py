"""Values of wrong types and out of range."""

import json
from typing import Any

from hypothesis import strategies as st

NAMES = ["../../x", "/tmp/x", "..", "", "\x00", "é", "a\nb", "u", "y", "RGP", "Ensemble", "\ud800", "x" * 5000]
WHOLE = [0, 1, 2, 3, 5, -1, -7, 10**6, 2**31, 2**63, 10**12, 10**18, 10**30, 10**400, -(10**400)]
REAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e-300, 1e300, -1e300, 1e308, float("nan"), float("inf"), -float("inf")]

whole = st.sampled_from(WHOLE) | st.integers(-3, 40)
real = st.sampled_from(REAL) | st.floats()
text = st.sampled_from(NAMES) | st.text(max_size=6)
simple = st.none() | st.booleans() | whole | real | text


def mostly(usual: st.SearchStrategy, odd: st.SearchStrategy) -> st.SearchStrategy:
    """One value in four is odd. (In a union, every part is equally frequent, and junk has many parts.)"""
    return st.sampled_from([usual, usual, usual, odd]).flatmap(lambda drawn: drawn)


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


plain = st.recursive(
    simple, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=3), max_leaves=6
) | st.sampled_from([40, 300, 700]).map(_deep)
"""Any JSON value."""


def places(tree: Any, found: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """Every place in a JSON tree, as its container and the key there."""
    found = [] if found is None else found
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        found.append((tree, key))
        places(tree[key], found)
    return found


@st.composite
def spoiled_json(draw, original: str) -> Any:
    """A JSON tree with one to three places changed."""
    tree = json.loads(original)
    for _ in range(draw(st.integers(1, 3))):
        everywhere = places(tree)
        if not everywhere:
            break
        container, key = everywhere[draw(st.integers(0, len(everywhere) - 1))]
        match draw(st.sampled_from(["replace", "replace", "again", "remove", "rename"])):
            case "replace":
                container[key] = draw(plain | st.integers(-2, 1000))
            case "again" if isinstance(container, list):
                container.append(container[key])
            case "rename" if isinstance(container, dict):
                container[draw(text)] = container.pop(key)
            case _:
                del container[key]
    return tree
