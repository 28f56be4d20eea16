"""Read and write skeletons (ASF) and motions (AMC) in Acclaim's format.

Errors name the file and the line. Numbers are written with all digits, so that reading gives the same values.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from revarb.errors import InputError
from revarb.motion.kinematics import AXES, ROOT_CHANNELS, Bone, Motion, Skeleton
from revarb.runtime.files import write_atomic


class _Line(NamedTuple):
    """A line of a file that is neither empty nor a comment, split into words."""

    path: Path
    number: int
    words: list[str]

    def error(self, expected: str) -> InputError:
        return InputError(f"{self.path}, line {self.number}: expected {expected}, received {' '.join(self.words)!r}")

    def values(self, count: int) -> tuple[float, ...]:
        """The `count` numbers after the first word; further words are ignored."""
        try:
            values = tuple(float(word) for word in self.words[1 : count + 1])
        except ValueError:
            values = ()
        if len(values) != count or not np.isfinite(values).all():
            raise self.error(f"{count} finite number(s) after {self.words[0]!r}")
        return values


def _lines(path: Path) -> Iterator[_Line]:
    try:
        text = path.read_text(encoding="ascii")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not an ASCII text file; expected a skeleton (ASF) or a motion (AMC)") from None
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if words:
            yield _Line(path, number, words)


def read_skeleton(path: str | os.PathLike[str]) -> Skeleton:
    """Read a skeleton from an ASF file.

    Parameters
    ----------
    path : path-like
        The file. Angles must be in degrees about x, then y, then z, as in the CMU database.

    Returns
    -------
    Skeleton

    Raises
    ------
    InputError
        If the file cannot be read or is not such a skeleton; the message names the line.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from revarb.datasets import mocap
    >>> channels = ("tx", "ty", "tz", "rx", "ry", "rz")
    >>> root = mocap.Bone("root", None, (0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), channels)
    >>> arm = mocap.Bone("arm", 0, (1.0, 0.0, 0.0), 2.0, (0.0, 0.0, 0.0), ("rz",))
    >>> skeleton = mocap.Skeleton((root, arm), scale=1.0)
    >>> with TemporaryDirectory() as folder:
    ...     mocap.read_skeleton(mocap.write_skeleton(f"{folder}/arm.asf", skeleton)).names
    ('root', 'arm')
    """
    sections = _sections(Path(path))
    scale = _scale(_section(sections, Path(path), ":units"))
    _check_root(_section(sections, Path(path), ":root"))
    bones = _bones(_section(sections, Path(path), ":bonedata"))
    parents = _parents(_section(sections, Path(path), ":hierarchy"), ["root", *bones])
    names = ["root", *bones]
    for name in bones:
        if name not in parents:
            raise InputError(f"{path}: the bone {name!r} has no parent in :hierarchy; every bone needs one")
    # Motion.joints passes through the bones once, so parents must come before their children.
    root = Bone("root", None, (0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), ROOT_CHANNELS)
    rest = [Bone(name, names.index(parents[name]), **values) for name, values in bones.items()]
    for index, bone in enumerate(rest, start=1):
        if bone.parent is not None and bone.parent >= index:
            raise InputError(f"{path}: the bone {bone.name!r} is before its parent in :bonedata; put it after")
    return Skeleton((root, *rest), scale)


def _sections(path: Path) -> dict[str, list[_Line]]:
    sections: dict[str, list[_Line]] = {}
    current: list[_Line] | None = None
    for line in _lines(path):
        if line.words[0].startswith(":"):
            current = sections.setdefault(line.words[0], [])
        elif current is None:
            raise line.error("a section such as ':units' first")
        else:
            current.append(line)
    return sections


def _section(sections: Mapping[str, list[_Line]], path: Path, name: str) -> list[_Line]:
    if not sections.get(name):
        raise InputError(f"{path} has no section {name!r}; is it a skeleton (ASF)?")
    return sections[name]


def _scale(lines: Sequence[_Line]) -> float:
    scale = None
    for line in lines:
        if line.words[0] == "length":
            (scale,) = line.values(1)
        if line.words[0] == "angle" and line.words[1:] != ["deg"]:
            raise line.error("angles in degrees, 'angle deg'")
    if scale is None or scale <= 0.0:
        raise lines[0].error("a positive 'length' in :units")
    return scale


def _check_root(lines: Sequence[_Line]) -> None:
    # Motion.joints supports neither a translated or rotated rest pose nor another order of the channels.
    for line in lines:
        key, *words = line.words
        if key == "order" and [word.lower() for word in words] != list(ROOT_CHANNELS):
            raise line.error("'order TX TY TZ RX RY RZ'")
        if key == "axis" and words != ["XYZ"]:
            raise line.error("'axis XYZ'")
        if key in ("position", "orientation") and any(line.values(3)):
            raise line.error(f"'{key} 0 0 0'")


def _bones(lines: Sequence[_Line]) -> dict[str, dict]:
    bones: dict[str, dict] = {}
    current: dict[str, _Line] = {}
    for line in lines:
        if line.words[0] == "begin":
            current = {}
        elif line.words[0] == "end":
            name, values = _bone(current, line)
            if name in bones or name == "root":
                raise line.error(f"a name that no other bone has ({name!r} is taken)")
            bones[name] = values
        else:
            current[line.words[0]] = line
    return bones


def _bone(entries: Mapping[str, _Line], end: _Line) -> tuple[str, dict]:
    for key in ("name", "direction", "length", "axis"):
        if key not in entries:
            raise end.error(f"a line {key!r} before the end of the bone")
    if len(entries["name"].words) != 2:
        raise entries["name"].error("one name")
    if entries["axis"].words[4:] != ["XYZ"]:
        raise entries["axis"].error("three angles and 'XYZ'")
    channels = tuple(entries["dof"].words[1:]) if "dof" in entries else ()
    if any(channel not in AXES for channel in channels) or len(set(channels)) < len(channels):
        raise entries["dof"].error("some of rx, ry, rz, each once")
    (length,) = entries["length"].values(1)
    direction, axis = entries["direction"].values(3), entries["axis"].values(3)
    return entries["name"].words[1], {"direction": direction, "length": length, "axis": axis, "channels": channels}


def _parents(lines: Sequence[_Line], names: Sequence[str]) -> dict[str, str]:
    parents: dict[str, str] = {}
    for line in lines:
        if line.words in (["begin"], ["end"]):
            continue
        parent, *children = line.words
        for name in line.words:
            if name not in names:
                raise line.error(f"names of bones ({name!r} is not one)")
        for child in children:
            if child in parents or child == "root":
                raise line.error(f"one parent per bone ({child!r} has one already)")
            parents[child] = parent
    return parents


def read_motion(path: str | os.PathLike[str], skeleton: Skeleton) -> Motion:
    """Read a motion from an AMC file.

    Parameters
    ----------
    path : path-like
        The file; the bones of a frame may be in any order.
    skeleton : Skeleton
        The skeleton that moves.

    Returns
    -------
    Motion

    Raises
    ------
    InputError
        If the file cannot be read or does not fit the skeleton; the message names the line.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from revarb.datasets import mocap
    >>> channels = ("tx", "ty", "tz", "rx", "ry", "rz")
    >>> root = mocap.Bone("root", None, (0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), channels)
    >>> arm = mocap.Bone("arm", 0, (1.0, 0.0, 0.0), 2.0, (0.0, 0.0, 0.0), ("rz",))
    >>> skeleton = mocap.Skeleton((root, arm), scale=1.0)
    >>> motion = mocap.Motion(skeleton, np.zeros((5, 7)))
    >>> with TemporaryDirectory() as folder:
    ...     mocap.read_motion(mocap.write_motion(f"{folder}/arm.amc", motion), skeleton).frames.shape
    (5, 7)
    """
    wanted = {bone.name: len(bone.channels) for bone in skeleton.bones if bone.channels}
    frames: list[dict[str, tuple[float, ...]]] = []
    last: _Line | None = None
    for line in _lines(Path(path)):
        if line.words[0].startswith(":"):
            if line.words[0].upper() == ":RADIANS":
                raise line.error("angles in degrees")
        elif len(line.words) == 1 and line.words[0].isdigit():
            _check_frame(frames, wanted, last or line)
            if int(line.words[0]) != len(frames) + 1:
                raise line.error(f"frame {len(frames) + 1}")
            frames.append({})
        else:
            _read_bone(line, frames, wanted)
        last = line
    if last is None or not frames:
        raise InputError(f"{path} has no frames; is it a motion (AMC)?")
    _check_frame(frames, wanted, last)
    return Motion(skeleton, np.array([[value for name in wanted for value in frame[name]] for frame in frames]))


def _read_bone(line: _Line, frames: list[dict[str, tuple[float, ...]]], wanted: Mapping[str, int]) -> None:
    name = line.words[0]
    if not frames:
        raise line.error("the number of a frame first")
    if name not in wanted:
        raise line.error("a bone of the skeleton")
    if name in frames[-1]:
        raise line.error(f"each bone once ({name!r} is repeated in frame {len(frames)})")
    if len(line.words) != wanted[name] + 1:
        raise line.error(f"{wanted[name]} finite number(s) after {name!r}")
    frames[-1][name] = line.values(wanted[name])


def _check_frame(frames: Sequence[Mapping], wanted: Mapping[str, int], last: _Line) -> None:
    if frames and len(frames[-1]) < len(wanted):
        missing = next(name for name in wanted if name not in frames[-1])
        raise last.error(f"the bone {missing!r} before the end of frame {len(frames)}")


def write_motion(path: str | os.PathLike[str], motion: Motion) -> Path:
    """Write a motion to an AMC file (atomic write).

    Parameters
    ----------
    path : path-like
        The file to write.
    motion : Motion
        The frames, and the skeleton whose bones they name.

    Returns
    -------
    pathlib.Path
        The file that was written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from revarb.datasets import mocap
    >>> channels = ("tx", "ty", "tz", "rx", "ry", "rz")
    >>> root = mocap.Bone("root", None, (0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), channels)
    >>> arm = mocap.Bone("arm", 0, (1.0, 0.0, 0.0), 2.0, (0.0, 0.0, 0.0), ("rz",))
    >>> skeleton = mocap.Skeleton((root, arm), scale=1.0)
    >>> with TemporaryDirectory() as folder:
    ...     mocap.write_motion(f"{folder}/arm.amc", mocap.Motion(skeleton, np.zeros((5, 7)))).name
    'arm.amc'
    """
    lines = [":FULLY-SPECIFIED", ":DEGREES"]
    bones = [bone for bone in motion.skeleton.bones if bone.channels]
    ends = np.cumsum([len(bone.channels) for bone in bones])[:-1]
    for number, frame in enumerate(motion.frames, start=1):
        lines.append(str(number))
        for bone, values in zip(bones, np.split(frame, ends), strict=True):
            lines.append(" ".join([bone.name, *(repr(float(value)) for value in values)]))
    return write_atomic(path, ("\n".join(lines) + "\n").encode())


def write_skeleton(path: str | os.PathLike[str], skeleton: Skeleton) -> Path:
    """Write a skeleton to an ASF file (atomic write).

    Parameters
    ----------
    path : path-like
        The file to write.
    skeleton : Skeleton
        The skeleton, its root first.

    Returns
    -------
    pathlib.Path
        The file that was written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from revarb.datasets import mocap
    >>> channels = ("tx", "ty", "tz", "rx", "ry", "rz")
    >>> root = mocap.Bone("root", None, (0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), channels)
    >>> arm = mocap.Bone("arm", 0, (1.0, 0.0, 0.0), 2.0, (0.0, 0.0, 0.0), ("rz",))
    >>> skeleton = mocap.Skeleton((root, arm), scale=1.0)
    >>> with TemporaryDirectory() as folder:
    ...     mocap.write_skeleton(f"{folder}/arm.asf", skeleton).name
    'arm.asf'
    """
    lines = [":version 1.10", ":name skeleton", ":units", f"  length {skeleton.scale!r}", "  angle deg"]
    lines += [":root", "  order TX TY TZ RX RY RZ", "  axis XYZ", "  position 0 0 0", "  orientation 0 0 0"]
    lines.append(":bonedata")
    for number, bone in enumerate(skeleton.bones[1:], start=1):
        lines += _bone_lines(number, bone)
    lines += [":hierarchy", "  begin"]
    for index, bone in enumerate(skeleton.bones):
        children = [skeleton.names[child] for child in skeleton.children(index)]
        lines += [f"    {' '.join([bone.name, *children])}"] if children else []
    return write_atomic(path, ("\n".join([*lines, "  end"]) + "\n").encode())


def _bone_lines(number: int, bone: Bone) -> list[str]:
    direction, axis = (" ".join(repr(value) for value in values) for values in (bone.direction, bone.axis))
    lines = [
        f"id {number}",
        f"name {bone.name}",
        f"direction {direction}",
        f"length {bone.length!r}",
        f"axis {axis} XYZ",
    ]
    lines += [f"dof {' '.join(bone.channels)}"] if bone.channels else []
    return ["  begin", *(f"    {line}" for line in lines), "  end"]
