"""`revarb avatar`."""

import os
import socket
import sys

import pytest

from revarb import cli
from revarb.cli.work import avatar
from revarb.models.model_file import load
from revarb.motion.avatar import model as models
from support.avatars import TINY, trained


@pytest.fixture
def model(recorded_data):
    return trained()


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr(models, "load_avatar_spec", lambda: TINY)
    return tmp_path


def test_a_model_is_trained_once(capsys, own_cache, model, monkeypatch):
    trainings = []
    monkeypatch.setattr(avatar, "train_model", lambda: trainings.append(1) or model)
    assert models.load_cached_model() is None
    assert avatar._load_or_train_model() is model
    assert "training the avatar" in capsys.readouterr().out
    assert avatar._load_or_train_model().bound == load(models.cached_model_path(TINY)).bound == model.bound
    assert len(trainings) == 1 and capsys.readouterr().out == ""
    models.cached_model_path(TINY).write_bytes(b"cut short")
    avatar._load_or_train_model()
    assert len(trainings) == 2 and models.load_cached_model() is not None


def test_a_cache_that_cannot_be_written_is_a_warning(own_cache, model, monkeypatch):
    (own_cache / "revarb").write_text("not a folder")
    monkeypatch.setattr(avatar, "train_model", lambda: model)
    with pytest.warns(UserWarning, match="the trained model could not be cached: cannot create"):
        assert avatar._load_or_train_model() is model


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        cli.main(["avatar", *map(str, arguments)])
    return end.value.code, capsys.readouterr().err


def test_without_viser_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "revarb.motion.avatar.live_page", raising=False)
    monkeypatch.setitem(sys.modules, "viser", None)
    assert run(capsys) == (2, 'error: the page needs viser; pip install "revarb[avatar]"\n')


def test_a_taken_port_is_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        expected = (
            f"error: cannot serve on 127.0.0.1, port {port}: Address already in use; choose another --port or --host\n"
        )
        assert run(capsys, "--port", port) == (2, expected)


def test_a_host_that_is_not_here_is_one_line(capsys):
    code, err = run(capsys, "--host", "192.0.2.1", "--port", 0)
    assert code == 2 and err.startswith("error: cannot serve on 192.0.2.1, port 0: ") and err.count("\n") == 1


@pytest.mark.parametrize("content", [None, b"", b"no model"])
def test_a_wrong_model_file_is_one_line(capsys, in_empty_folder, content):
    if content is not None:
        (in_empty_folder / "m.rgp").write_bytes(content)
    code, err = run(capsys, "--model", "m.rgp", "--port", 0)
    assert code == 2 and err.startswith("error: ") and "m.rgp" in err and err.count("\n") == 1


def test_missing_motions_are_one_line(capsys, model, tmp_path, monkeypatch):
    file = model.save(tmp_path / "m.rgp")
    monkeypatch.setitem(os.environ, "REVARB_DATA", str(tmp_path))
    code, err = run(capsys, "--model", file, "--port", 0)
    assert code == 2 and "REVARB_DATA is set, but there is no" in err and err.count("\n") == 1
