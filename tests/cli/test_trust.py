"""`mixcma resume` runs the command in the file: its own at once, any other only after a yes."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys

import pytest

from mixcma import Float, Space, minimize
from mixcma.cli import main
from mixcma.cli.trust import is_own, signature

PROBLEM = """
[objective]
command = ["{python}", "-c", "open('{mark}', 'a').write('x'); print(1.0)", "{{x}}"]
value = "stdout"
[run]
budget = 6
seed = 1
[space.x]
type = "float"
low = -5
high = 5
"""
ABOUT = {"text": "text", "folder": "/folder", "path": "/folder/problem.toml"}


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    made = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(made))
    return made


@pytest.fixture
def mark(tmp_path):
    """A file that has a letter for each time the command was run."""
    return tmp_path / "mark"


@pytest.fixture
def own(tmp_path, mark, run_command):
    path = tmp_path / "problem.toml"
    path.write_text(PROBLEM.format(python=sys.executable, mark=mark))
    result = run_command(main, ["run", str(path), "--quiet"])
    assert result.exit_code == 0, result.output
    mark.unlink()
    return path.with_suffix(".db")


@pytest.fixture
def foreign(tmp_path, mark, own, state):
    """A file that another user has made."""
    shutil.rmtree(state)
    return own


def resume(run_command, path, *options, **more):
    return run_command(main, ["resume", str(path), "--budget", "10", "--quiet", *options], **more)


def test_the_file_of_ones_own_run_goes_on_at_once(own, mark, run_command):
    result = resume(run_command, own)
    assert result.exit_code == 0, result.stderr
    assert len(mark.read_text()) == 4


def test_another_file_is_refused_without_a_terminal_and_its_command_is_shown(foreign, mark, run_command):
    result = resume(run_command, foreign)
    assert result.exit_code == 2
    assert "was not begun by your own mixcma run" in result.stderr
    assert json.dumps(sys.executable) in " ".join(result.stderr.split())
    assert str(foreign.parent) in result.stderr
    assert "pass --yes" in result.stderr
    assert not mark.exists()


def test_another_file_goes_on_with_yes(foreign, mark, run_command):
    assert resume(run_command, foreign, "--yes").exit_code == 0
    assert len(mark.read_text()) == 4


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_at_a_terminal_it_is_asked(foreign, mark, run_command, monkeypatch, answer):
    monkeypatch.setattr("mixcma.cli.trust._at_a_terminal", lambda: True)
    result = resume(run_command, foreign, input=f"{answer}\n")
    assert (result.exit_code == 0) == mark.exists() == (answer == "y")


def test_a_python_module_is_not_imported_before_the_yes(tmp_path, run_command, state):
    (tmp_path / "imported_by_a_stranger.py").write_text(
        f"import pathlib\npathlib.Path({str(tmp_path / 'mark')!r}).touch()\ndef cost(p):\n    return p['x']\n"
    )
    text = PROBLEM.format(python="", mark="").split("value")[1]
    path = tmp_path / "problem.toml"
    path.write_text(f'[objective]\npython = "imported_by_a_stranger:cost"\n{text.split(chr(10), 1)[1]}')
    assert run_command(main, ["run", str(path), "--quiet"]).exit_code == 0
    (tmp_path / "mark").unlink()
    sys.modules.pop("imported_by_a_stranger")
    shutil.rmtree(state)
    result = resume(run_command, path.with_suffix(".db"))
    assert result.exit_code == 2
    assert "imported_by_a_stranger:cost" in result.stderr
    assert not (tmp_path / "mark").exists()


def test_a_file_without_a_signature_is_not_ones_own(tmp_path, run_command):
    """Also one in which a Python program has put a command."""
    notes = {"problem": {"text": "[objective]\ncommand = ['true']", "folder": "/", "path": "/x", "signature": 3}}
    minimize(lambda p: p["x"], Space({"x": Float(0, 1)}), budget=6, run_file=tmp_path / "run.db", notes=notes)
    result = resume(run_command, tmp_path / "run.db")
    assert result.exit_code == 2
    assert "pass --yes" in result.stderr


def test_a_signature_holds_for_its_text_and_folder_only():
    made = {**ABOUT, "signature": signature(ABOUT)}
    assert is_own(made)
    assert not is_own({**made, "text": "another"})
    assert not is_own({**made, "folder": "/elsewhere"})
    assert not is_own({**made, "path": "/elsewhere/problem.toml"})
    assert not is_own({**made, "signature": "0" * 64})
    assert not is_own({**made, "signature": "é\ud800"})
    assert not is_own(ABOUT)


def test_the_key_is_made_once_and_is_private(state):
    signature(ABOUT)
    key = state / "mixcma" / "key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    content = key.read_bytes()
    assert len(content) == 32
    assert signature(ABOUT) == signature(ABOUT)
    assert key.read_bytes() == content


@pytest.mark.parametrize("spoil", [lambda key: key.chmod(0o644), lambda key: key.write_bytes(b"short")])
def test_a_key_that_others_could_know_is_no_key(state, spoil):
    made = {**ABOUT, "signature": signature(ABOUT)}
    spoil(state / "mixcma" / "key")
    assert not is_own(made)


def test_where_no_key_can_be_kept_a_run_works_and_is_asked_about_later(tmp_path, monkeypatch, mark, run_command):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "below"))
    path = tmp_path / "problem.toml"
    path.write_text(PROBLEM.format(python=sys.executable, mark=mark))
    assert run_command(main, ["run", str(path), "--quiet"]).exit_code == 0
    assert resume(run_command, path.with_suffix(".db")).exit_code == 2
    assert resume(run_command, path.with_suffix(".db"), "--yes").exit_code == 0


def test_a_salvaged_file_is_still_ones_own(own, tmp_path, mark, run_command):
    saved = run_command(main, ["salvage", str(own), str(tmp_path / "new.db")])
    assert saved.exit_code == 0, saved.stderr
    assert "6 of them evaluations; 0 rows are lost" in saved.stdout
    assert f"mixcma resume {tmp_path / 'new.db'}" in saved.stdout
    assert resume(run_command, tmp_path / "new.db").exit_code == 0


def test_show_report_and_export_run_nothing(foreign, mark, run_command):
    for command in (["show"], ["report"], ["export", "--csv", os.devnull]):
        assert run_command(main, [command[0], str(foreign), *command[1:]]).exit_code == 0
    assert not mark.exists()
