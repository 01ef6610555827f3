"""Which module may import which: the contracts of pyproject.toml, and rules that they cannot express."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED_BY_PROVIDERS = {"agentchat.providers.base", "agentchat.providers.process"}
NOT_PROVIDERS = SHARED_BY_PROVIDERS | {"agentchat.providers.registry"}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter over the packages in this folder."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--no-logo"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project's Python files, to be spoiled."""
    only_python = shutil.ignore_patterns("__pycache__", "static")
    for package in ("agentchat", "project"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=only_python)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_contracts_are_kept() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "text", "contract"),
    [
        ("utils.py", "", "agentchat.utils"),
        ("models/clock.py", "from agentchat.services import chats", "rooms of agentchat"),
        ("web/pages.py", "from agentchat import consumers", "rooms of agentchat"),
        ("conf.py", "from agentchat import events", "rooms of agentchat"),
        ("services/clean.py", "import rest_framework", "REST framework stays"),
        ("journal/reader.py", "import channels.layers", "only the bus"),
        ("providers/base.py", "from agentchat import wire", "A provider knows"),
        ("web/pages.py", "from agentchat.journal import append", "write to the journal"),
        ("services/clean.py", "import project.settings", "does not know the project"),
    ],
)
def test_breach_is_found(copy: Path, module: str, text: str, contract: str) -> None:
    file = copy / "agentchat" / module
    before = file.read_text() if file.exists() else ""
    file.write_text(f"{before}\n{text}\n")
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert contract in done.stdout.split("Broken contracts", 1)[-1], done.stdout


# --- beyond the contracts ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("agentchat", cache_dir=None)


def importers(graph: grimp.ImportGraph, module: str) -> set[str]:
    """Modules outside of `module` that import it or a part of it."""
    package = {module} | graph.find_descendants(module)
    return {name for part in package for name in graph.find_modules_that_directly_import(part)} - package


def imported(graph: grimp.ImportGraph, module: str) -> set[str]:
    package = {module} | graph.find_descendants(module)
    return {name for part in package for name in graph.find_modules_directly_imported_by(part)} - package


def test_a_provider_imports_only_the_interface_and_is_imported_by_nobody(graph: grimp.ImportGraph) -> None:
    """Also a provider of tomorrow: all but three modules of the package are providers."""
    providers = graph.find_children("agentchat.providers") - NOT_PROVIDERS
    assert {name: imported(graph, name) - SHARED_BY_PROVIDERS for name in providers} == {
        name: set() for name in providers
    }
    assert {name: importers(graph, name) for name in providers} == {name: set() for name in providers}


def test_constants_import_only_the_settings() -> None:
    assert outside("conf.py") <= {"__future__", "django.conf"}


def test_only_the_bus_imports_channel_layers() -> None:
    files = {
        file.relative_to(ROOT / "agentchat").as_posix()
        for file in (ROOT / "agentchat").rglob("*.py")
        if any(name.startswith("channels.layers") for name in modules_of(file))
    }
    assert files == {"journal/bus.py"}


def outside(module: str) -> set[str]:
    return modules_of(ROOT / "agentchat" / module)


def modules_of(file: Path) -> set[str]:
    """Names of the modules that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names
