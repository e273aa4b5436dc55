"""The documentation builds without a warning, and its examples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mixcma import Float, Space, minimize

ROOT = Path(__file__).parents[1]


def test_the_site_builds_without_warnings(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    page = (tmp_path / "api.html").read_text()
    assert "mixcma.minimize" in page


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text()
    blocks = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "import" in block]
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)


@pytest.mark.parametrize("page", [*(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md")), "README.md"])
def test_the_links_of_a_page_lead_somewhere(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize(
    ("given", "remedy"), [(1e3, 1000), (999.7, 1000), (0.2, 1), (-5, 1), (float("nan"), 1), (float("inf"), 1)]
)
def test_the_remedy_that_a_message_suggests_is_near_what_was_meant(given, remedy):
    with pytest.raises(ValueError, match=f"; pass budget={remedy}$"):
        minimize(lambda p: p["x"], Space({"x": Float(0, 1)}), budget=given)


def test_the_error_message_in_the_documentation_is_the_real_one():
    page = (ROOT / "docs/spaces.md").read_text()
    (message,) = re.findall(r"^variable 'ribs': .*$", page, re.MULTILINE)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Space.from_dict({"ribs": {"type": "int", "low": 12, "high": 1}})
