"""The scripts of the page: that they fit to each other and to what the templates draw."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from agentchat.rendering import times
from agentchat.templatetags import agentchat
from tests.services.browser import DESKTOP, opened

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "agentchat" / "static" / "agentchat"
TEMPLATES = ROOT / "templates" / "agentchat"
MODULES = sorted(FOLDER.glob("*.js"))
MARKUP = "\n".join(path.read_text() for path in sorted(TEMPLATES.rglob("*.html")))
IMPORT = re.compile(r"^import (?:\* as \w+|\{ (?P<names>[^}]+) \}) from '\./(?P<file>[\w-]+\.js)';$", re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function|const|let) (\w+)", re.MULTILINE)
MADE_BY_SCRIPT = {"data-inert", "data-offline"}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_a_module_imports_what_another_exports(module: Path) -> None:
    text = module.read_text()
    found = list(IMPORT.finditer(text))
    assert len(found) == len(re.findall(r"^import ", text, re.MULTILINE)), "an import of another form"
    for one in found:
        exported = EXPORT.findall((FOLDER / one["file"]).read_text())
        assert set((one["names"] or "").replace(" ", "").split(",")) - {""} <= set(exported)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_a_module_is_short_and_makes_no_code_of_text(module: Path) -> None:
    text = module.read_text()
    assert text.count("\n") < 250
    assert not re.search(r"\beval\(|new Function|document\.write|\.outerHTML\s*=", text)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_what_a_module_looks_for_is_drawn_by_a_template(module: Path) -> None:
    wanted = set(re.findall(r"\[(data-[a-z-]+)", module.read_text()))
    assert {name for name in wanted - MADE_BY_SCRIPT if name not in MARKUP} == set()
    ids = re.findall(r"getElementById\('([\w-]+)'\)", module.read_text())
    assert [name for name in ids if f'id="{name}"' not in MARKUP] == []


def test_every_template_is_used() -> None:
    code = MARKUP + "\n".join(path.read_text() for path in (ROOT / "agentchat" / "web").glob("*.py"))
    for path in TEMPLATES.rglob("*.html"):
        name = path.relative_to(TEMPLATES).as_posix()
        stem = path.stem
        assert f"agentchat/{name}" in code or f'"{stem}"' in code, name


def test_every_icon_is_in_the_sprite() -> None:
    sprite = set(re.findall(r'id="([\w-]+)"', (FOLDER / "icons.svg").read_text()))
    assert set(re.findall(r'{% icon "([\w-]+)"', MARKUP)) - {"spin"} <= sprite


def test_script_and_server_say_times_alike(browser: Browser) -> None:
    seconds = [0, 9, 59, 60, 102, 3599, 3600, 7384, 172_799, 172_800, 900_000]
    script = """async ([code, seconds]) => {
        const { age, clock } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
        return seconds.map((one) => [age(one), clock(one)]);
    }"""
    with opened(browser, DESKTOP) as page:
        said = page.evaluate(script, [(FOLDER / "ages.js").read_text(), seconds])
    assert said == [[times.age(one), agentchat.clock(one)] for one in seconds]
