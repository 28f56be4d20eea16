"""Files of skeletons and motions: Acclaim's (ASF, AMC), as in the CMU database, and Biovision's (BVH).

Errors name the file and the line. Numbers in Acclaim's format are written with all digits, so that reading gives the
same values. BVH is only written: Blender and most animation programs import it.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb import InputError
from studies.output import write_file
from studies.paper.motion.kinematics import AXES, ROOT_CHANNELS, Bone, Motion, Skeleton

POSITION = "Xposition Yposition Zposition"
ROTATION = "Zrotation Xrotation Yrotation"
CENTIMETRES = 100.0  # per metre


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


def read_skeleton(path: Path) -> Skeleton:
    """Read a skeleton from an ASF file; angles must be in degrees about x, then y, then z."""
    sections: dict[str, list[_Line]] = {}
    name = ""
    for line in _lines(path):
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


def read_motion(path: Path, skeleton: Skeleton) -> Motion:
    """Read a motion of a skeleton from an AMC file; the bones of a frame may be in any order."""
    wanted = {bone.name: len(bone.channels) for bone in skeleton.bones if bone.channels}
    frames: list[dict[str, tuple[float, ...]]] = []
    for line in _lines(path):
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


def write_motion(path: Path, motion: Motion) -> Path:
    """Write a motion to an AMC file."""
    lines = [":FULLY-SPECIFIED", ":DEGREES"]
    bones = [bone for bone in motion.skeleton.bones if bone.channels]
    ends = np.cumsum([len(bone.channels) for bone in bones])[:-1]
    for number, frame in enumerate(motion.frames, start=1):
        lines.append(str(number))
        for bone, values in zip(bones, np.split(frame, ends), strict=True):
            lines.append(" ".join([bone.name, *(repr(float(value)) for value in values)]))
    return _write_lines(path, lines)


def write_skeleton(path: Path, skeleton: Skeleton) -> Path:
    """Write a skeleton to an ASF file."""
    lines = [
        ":version 1.10", ":name skeleton", ":units", f"  length {skeleton.scale!r}", "  angle deg",
        ":root", "  order TX TY TZ RX RY RZ", "  axis XYZ", "  position 0 0 0", "  orientation 0 0 0", ":bonedata",
    ]  # fmt: skip
    for number, bone in enumerate(skeleton.bones[1:], start=1):
        direction, axis = (" ".join(repr(value) for value in values) for values in (bone.direction, bone.axis))
        entries = [f"id {number}", f"name {bone.name}", f"direction {direction}", f"length {bone.length!r}"]
        entries += [f"axis {axis} XYZ", *([f"dof {' '.join(bone.channels)}"] if bone.channels else [])]
        lines += ["  begin", *(f"    {entry}" for entry in entries), "  end"]
    lines += [":hierarchy", "  begin"]
    for index, bone in enumerate(skeleton.bones):
        children = [skeleton.names[child] for child in skeleton.children(index)]
        lines += [f"    {' '.join([bone.name, *children])}"] if children else []
    return _write_lines(path, [*lines, "  end"])


def write_bvh(path: Path, motion: Motion, dt: float) -> Path:
    """Write a motion to a BVH file, `dt` seconds between frames.

    A BVH joint is the start of a bone and its rotation moves the bone and its descendants, whereas `Motion.joints`
    gives the ends of bones. Every bone becomes a joint of the same name, whose OFFSET is the offset of its parent bone;
    a bone without children ends in an End Site. Siblings start at the same point, the children of the root at the root.

    Lengths are in centimetres, as is usual in BVH (import into Blender with scale 0.01 to get metres), y is up. Angles
    are in degrees about z, x and y of the skeleton's frame: in BVH, bones have no frames of their own.
    """
    head = ["HIERARCHY", *_joint(motion.skeleton, 0), "MOTION", f"Frames: {len(motion.frames)}", f"Frame Time: {dt!r}"]
    return _write_lines(path, [*head, *map(_numbers, _channels(motion))])


def _joint(skeleton: Skeleton, index: int) -> list[str]:
    """Lines of a joint and of its descendants."""
    bone = skeleton.bones[index]
    if bone.parent is None:
        lines = [f"ROOT {bone.name}", "{", _offset(bone, skeleton), f"\tCHANNELS 6 {POSITION} {ROTATION}"]
    else:
        parent = skeleton.bones[bone.parent]
        lines = [f"JOINT {bone.name}", "{", _offset(parent, skeleton), f"\tCHANNELS 3 {ROTATION}"]
    below = [line for child in skeleton.children(index) for line in _joint(skeleton, child)]
    below = below or ["End Site", "{", _offset(bone, skeleton), "}"]
    return [*lines, *(f"\t{line}" for line in below), "}"]


def _offset(bone: Bone, skeleton: Skeleton) -> str:
    return f"\tOFFSET {_numbers(bone.offset * skeleton.metres_per_unit * CENTIMETRES)}"


def _channels(motion: Motion) -> Float64[np.ndarray, "T C"]:
    """One row per frame: position of the root, then the angles of all joints in the order of the hierarchy."""
    rotations = motion.rotations()
    angles = [_angles(rotations[index]) for index in _depth_first(motion.skeleton, 0)]
    return np.column_stack([motion.root * motion.skeleton.metres_per_unit * CENTIMETRES, *angles])


def _depth_first(skeleton: Skeleton, index: int) -> list[int]:
    descendants = [each for child in skeleton.children(index) for each in _depth_first(skeleton, child)]
    return [index, *descendants]


def _angles(rotations: Float64[np.ndarray, "T 3 3"]) -> Float64[np.ndarray, "T 3"]:
    """Euler angles in degrees about z, x and y: R = R_z R_x R_y."""
    z = np.arctan2(-rotations[:, 0, 1], rotations[:, 1, 1])
    x = np.arctan2(rotations[:, 2, 1], np.hypot(rotations[:, 0, 1], rotations[:, 1, 1]))
    # In a gimbal lock z is arbitrary. Computing y from R_z(z)^T R keeps the product right for any z.
    remaining = np.cos(z)[:, None] * rotations[:, 0] + np.sin(z)[:, None] * rotations[:, 1]
    y = np.arctan2(remaining[:, 2], remaining[:, 0])
    # Readers interpolate angles linearly between frames, so there must be no jumps from 180 to -180.
    return np.unwrap(np.degrees(np.stack([z, x, y], axis=1)), period=360.0, axis=0)


def _numbers(values: Float64[np.ndarray, "_"]) -> str:
    # Adding 0.0 turns -0.0 into 0.0.
    return " ".join(f"{value:.6f}" for value in np.round(values, 6) + 0.0)


def _write_lines(path: Path, lines: Sequence[str]) -> Path:
    return write_file(path, ("\n".join(lines) + "\n").encode())
