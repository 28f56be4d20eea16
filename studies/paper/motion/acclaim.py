"""Read and write skeletons (ASF) and motions (AMC) in Acclaim's format, as in the CMU database.

Errors name the file and the line. Numbers are written with all digits, so that reading gives the same values.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from revarb import InputError
from studies.output import write_file
from studies.paper.motion.kinematics import AXES, ROOT_CHANNELS, Bone, Motion, Skeleton


class _Line(NamedTuple):
    """A line of a file that is neither empty nor a comment, split into words."""

    path: Path
    number: int
    words: list[str]

    def require(self, valid: bool, expected: str) -> None:
        if not valid:
            received = " ".join(self.words)
            raise InputError(f"{self.path}, line {self.number}: expected {expected}, received {received!r}")

    def values(self, count: int) -> tuple[float, ...]:
        """The `count` numbers after the first word."""
        try:
            values = tuple(float(word) for word in self.words[1 : count + 1])
        except ValueError:
            values = ()
        valid = len(values) == count and bool(np.isfinite(values).all())
        self.require(valid, f"{count} finite number(s) after {self.words[0]!r}")
        return values


def _lines(path: Path) -> Iterator[_Line]:
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not ASCII text'}") from None
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if words:
            yield _Line(path, number, words)


def read_skeleton(path: str | os.PathLike[str]) -> Skeleton:
    """Read a skeleton from an ASF file; angles must be in degrees about x, then y, then z."""
    sections: dict[str, list[_Line]] = {}
    name = ""
    for line in _lines(Path(path)):
        if line.words[0].startswith(":"):
            name = line.words[0]
        else:
            sections.setdefault(name, []).append(line)
    for name in (":units", ":root", ":bonedata", ":hierarchy"):
        if name not in sections:
            raise InputError(f"{path} has no section {name!r}; is it a skeleton (ASF)?")
    scale = _read_scale(sections[":units"])
    _check_root(sections[":root"])
    bones = _read_bones(sections[":bonedata"])
    parents = _read_parents(sections[":hierarchy"], ["root", *bones])
    root = Bone("root", None, (0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), ROOT_CHANNELS)
    indices = {name: index for index, name in enumerate(["root", *bones])}
    rest = []
    for name, values in bones.items():
        # Motion.joints passes through the bones once, so parents must come before their children.
        if indices.get(parents.get(name, ""), len(indices)) >= indices[name]:
            raise InputError(f"{path}: the bone {name!r} needs a parent that is before it in :bonedata")
        rest.append(Bone(name, indices[parents[name]], **values))
    return Skeleton((root, *rest), scale)


def _read_scale(lines: Sequence[_Line]) -> float:
    scale = 0.0
    for line in lines:
        if line.words[0] == "length":
            (scale,) = line.values(1)
        line.require(line.words[0] != "angle" or line.words[1:] == ["deg"], "angles in degrees, 'angle deg'")
    lines[0].require(scale > 0.0, "a positive 'length' in :units")
    return scale


def _check_root(lines: Sequence[_Line]) -> None:
    # Motion.joints supports neither a translated or rotated rest pose nor another order of the channels.
    for line in lines:
        key, *words = line.words
        if key == "order":
            line.require([word.lower() for word in words] == list(ROOT_CHANNELS), "'order TX TY TZ RX RY RZ'")
        elif key == "axis":
            line.require(words == ["XYZ"], "'axis XYZ'")
        elif key in ("position", "orientation"):
            line.require(not any(line.values(3)), f"'{key} 0 0 0'")


def _read_bones(lines: Sequence[_Line]) -> dict[str, dict[str, Any]]:
    bones: dict[str, dict[str, Any]] = {}
    current: dict[str, _Line] = {}
    for line in lines:
        if line.words[0] == "end":
            missing = [key for key in ("name", "direction", "length", "axis") if key not in current]
            line.require(not missing, f"lines {missing} before the end of the bone")
            name = current["name"].words[-1]
            line.require(name not in bones, f"a name that no other bone has ({name!r} is taken)")
            bones[name] = _read_bone(current)
        current = {} if line.words[0] in ("begin", "end") else {**current, line.words[0]: line}
    return bones


def _read_bone(entries: Mapping[str, _Line]) -> dict[str, Any]:
    entries["axis"].require(entries["axis"].words[4:] == ["XYZ"], "three angles and 'XYZ'")
    channels = tuple(entries["dof"].words[1:]) if "dof" in entries else ()
    if channels:
        entries["dof"].require(set(channels) <= set(AXES), "some of rx, ry, rz")
    (length,), direction, axis = entries["length"].values(1), entries["direction"].values(3), entries["axis"].values(3)
    return {"direction": direction, "length": length, "axis": axis, "channels": channels}


def _read_parents(lines: Sequence[_Line], names: Sequence[str]) -> dict[str, str]:
    parents: dict[str, str] = {}
    for line in lines:
        if line.words not in (["begin"], ["end"]):
            parent, *children = line.words
            line.require(set(line.words) <= set(names), "names of bones")
            parents |= dict.fromkeys(children, parent)
    return parents


def read_motion(path: str | os.PathLike[str], skeleton: Skeleton) -> Motion:
    """Read a motion of a skeleton from an AMC file; the bones of a frame may be in any order."""
    wanted = {bone.name: len(bone.channels) for bone in skeleton.bones if bone.channels}
    frames: list[dict[str, tuple[float, ...]]] = []
    for line in _lines(Path(path)):
        name = line.words[0]
        if name.startswith(":"):
            line.require(name.upper() != ":RADIANS", "angles in degrees")
        elif len(line.words) == 1 and name.isdigit():
            line.require(int(name) == len(frames) + 1, f"frame {len(frames) + 1}")
            frames.append({})
        else:
            valid = bool(frames) and name in wanted and name not in frames[-1] and len(line.words) == wanted[name] + 1
            line.require(valid, "the numbers of a bone of the skeleton, each bone once in a frame")
            frames[-1][name] = line.values(wanted[name])
    incomplete = next((number for number, frame in enumerate(frames, start=1) if len(frame) < len(wanted)), None)
    if not frames or incomplete is not None:
        what = "has no frames; is it a motion (AMC)?" if not frames else f"lacks a bone in frame {incomplete}"
        raise InputError(f"{path} {what}")
    return Motion(skeleton, np.array([[value for name in wanted for value in frame[name]] for frame in frames]))


def write_motion(path: str | os.PathLike[str], motion: Motion) -> Path:
    """Write a motion to an AMC file."""
    lines = [":FULLY-SPECIFIED", ":DEGREES"]
    bones = [bone for bone in motion.skeleton.bones if bone.channels]
    ends = np.cumsum([len(bone.channels) for bone in bones])[:-1]
    for number, frame in enumerate(motion.frames, start=1):
        lines.append(str(number))
        for bone, values in zip(bones, np.split(frame, ends), strict=True):
            lines.append(" ".join([bone.name, *(repr(float(value)) for value in values)]))
    return write_file(path, ("\n".join(lines) + "\n").encode())


def write_skeleton(path: str | os.PathLike[str], skeleton: Skeleton) -> Path:
    """Write a skeleton to an ASF file."""
    lines = [":version 1.10", ":name skeleton", ":units", f"  length {skeleton.scale!r}", "  angle deg"]
    lines += [
        ":root",
        "  order TX TY TZ RX RY RZ",
        "  axis XYZ",
        "  position 0 0 0",
        "  orientation 0 0 0",
        ":bonedata",
    ]
    for number, bone in enumerate(skeleton.bones[1:], start=1):
        direction, axis = (" ".join(repr(value) for value in values) for values in (bone.direction, bone.axis))
        entries = [f"id {number}", f"name {bone.name}", f"direction {direction}", f"length {bone.length!r}"]
        entries += [f"axis {axis} XYZ", *([f"dof {' '.join(bone.channels)}"] if bone.channels else [])]
        lines += ["  begin", *(f"    {entry}" for entry in entries), "  end"]
    lines += [":hierarchy", "  begin"]
    for index, bone in enumerate(skeleton.bones):
        children = [skeleton.names[child] for child in skeleton.children(index)]
        lines += [f"    {' '.join([bone.name, *children])}"] if children else []
    return write_file(path, ("\n".join([*lines, "  end"]) + "\n").encode())
