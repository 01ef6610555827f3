"""The HTML of markdown: what it may hold, and that nothing harmful gets through."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentchat.rendering import markup
from agentchat.rendering.markdown import render

ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><style>*{}</style></svg>",
    "<style>body{display:none}</style>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java&#10;script:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](<java\tscript:alert(1)>)",
    "[x](vbscript:x)",
    "[x](data:text/html,<script>alert(1)</script>)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "![x](javascript:alert(1))",
    "![x](https://a.b/c.png)",
    '![" onerror="alert(1)](https://a.b/" onerror="alert(1))',
    '[x](https://a.b "\\" onmouseover=\\"alert(1)")',
    "[x](/logout)",
    "[x](//evil.example)",
    "[x](#top)",
    "<javascript:alert(1)>",
    "<https://a.b/>",
    "[![p](https://a.b/c.png)](https://a.b)",
    "[![p](https://a.b/c.png)](/logout)",
    '```"><script>alert(1)</script>\n</code></pre><script>alert(1)</script>\n```',
    "```python\n</code></pre><script>alert(1)</script> '<img src=x onerror=alert(1)>'\n```",
    '```" onclick="alert(1)\nx\n```',
    "    </code></pre><script>alert(1)</script>",
    "| <script>alert(1)</script> | <img onerror=x> |\n|---|---|\n| [x](javascript:x) | ![y](data:x) |",
    "# <svg/onload=alert(1)>",
    "- " * 30 + "<script>alert(1)</script>",
    "`<script>alert(1)</script>`",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
]


class Page(HTMLParser):
    """Collects what a browser would make of a text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_harmless(html: str) -> None:
    page = Page(html)
    assert not page.open
    for tag, attributes in page.elements:
        assert tag in markup._TAGS
        assert set(attributes) <= {"href", "title", "rel", "class", "tabindex", "start"}
        if tag == "a":
            assert attributes["rel"] == "noopener noreferrer nofollow"
            assert str(attributes["href"]).lower().startswith(("http://", "https://", "mailto:"))


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("frame", ["{}", "text {} text", "> {}", "- {}", "**{}**"])
def test_attacks_come_out_harmless(attack: str, frame: str) -> None:
    assert_harmless(render(frame.format(attack)))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from([*ATTACKS, "<", ">", '"', "'", "[", "](", ")", "`", "\n", "\n\n", "&", "!"]),
        max_size=8,
    )
)
def test_mixed_attacks_come_out_harmless(parts: list[str]) -> None:
    assert_harmless(render("".join(parts)))


def test_html_is_shown_as_text() -> None:
    assert render("<script>alert(1)</script>") == "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"


@pytest.mark.parametrize("url", ["http://a.b/c?d=e", "https://a.b", "HTTPS://a.b", "mailto:a@b.c"])
def test_links_to_the_web_stay(url: str) -> None:
    [paragraph, link] = Page(render(f"[words]({url})")).elements
    assert paragraph[0] == "p"
    assert link == ("a", {"href": url, "rel": "noopener noreferrer nofollow"})


@pytest.mark.parametrize("url", ["/logout", "//evil.example", "#top", "src/a.py", "ftp://a.b", "httpss:x"])
def test_other_links_are_their_words(url: str) -> None:
    assert render(f"a [words]({url}) b") == "<p>a words b</p>\n"


def test_pictures_are_links_with_their_words() -> None:
    html = render("![a cat](https://a.b/c.png)")
    assert '<a href="https://a.b/c.png" rel="noopener noreferrer nofollow">a cat</a>' in html
    assert Page(render("[![cat](https://a.b/c.png)](https://d.e)")).elements[1:] == [
        ("a", {"href": "https://d.e", "rel": "noopener noreferrer nofollow"})
    ]
    assert render("![cat](c.png) ![](c.png)") == "<p>cat picture</p>\n"


def test_a_bare_address_is_no_link() -> None:
    assert render("see https://a.b") == "<p>see https://a.b</p>\n"


def test_definitions_are_text() -> None:
    assert "<a" not in render("[x]\n\n[x]: https://a.b\n")


def test_code_has_the_classes_of_the_stylesheet() -> None:
    html = render("```python\ndef f(): return 'x'  # why\n```")
    assert html.startswith('<figure class="code"><figcaption>python</figcaption><pre tabindex="0"><code>')
    for name in ("tok-k", "tok-s", "tok-c"):
        assert f'<span class="{name}">' in html
    assert "style=" not in html


@pytest.mark.parametrize("language", [*sorted(markup.HIGHLIGHTED), "nonsense", ""])
@pytest.mark.parametrize("code", ["\n\n  a = '<b>' & 1 // x\n\n", "\ufeffx", '\tif (x) { """ }\x0c\n'])
def test_code_is_shown_exactly(language: str, code: str) -> None:
    page = Page(markup.code(code, language))
    assert page.text.removesuffix("\n") == language + code


@pytest.mark.parametrize("language", ["nonsense", "brainfuck"])
def test_unknown_languages_stay_plain(language: str) -> None:
    assert "<span" not in render(f"```{language}\nif x\n```")


def test_huge_code_stays_plain() -> None:
    assert markup.highlighted("x = 1\n", "py")
    assert not markup.highlighted("x = 1\n" * markup.HIGHLIGHT_CHARS, "py")


def test_tables_scroll_and_numbers_stand_right() -> None:
    html = render("| a | b |\n|---|--:|\n| c | 1 |\n")
    assert html.startswith('<div class="table" tabindex="0"><table>')
    assert '<th class="r">b</th>' in html and '<td class="r">1</td>' in html and "<td>c</td>" in html
    assert "style=" not in html


def test_headings_are_below_those_of_the_page() -> None:
    html = render("# a\n\n## b\n\n### c\n\n###### d\n\ne\n===\n")
    assert [tag for tag, _ in Page(html).elements] == ["h3", "h3", "h4", "h4", "h3"]


def test_what_is_too_deep_is_shown_as_it_was_written() -> None:
    """The parser would leave it out, and all that follows."""
    text = "- " * 60 + "deep\n\nrm -rf /\n"
    assert Page(render(text)).text.strip() == text.strip()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["- ", "> ", "1. ", "* "]), max_size=60), st.booleans())
def test_no_depth_hides_text(markers: list[str], twice: bool) -> None:
    shown = Page(render("".join(markers) + "needle\n" * (1 + twice) + "\nhay\n")).text
    assert "needle" in shown and "hay" in shown


def test_hidden_characters_are_left_as_they_are() -> None:
    assert render("a\u202eb\u200bc") == "<p>a\u202eb\u200bc</p>\n"


def test_other_marks() -> None:
    assert render("*a* **b** ~~c~~ `d`  \ne") == (
        "<p><em>a</em> <strong>b</strong> <s>c</s> <code>d</code><br>\ne</p>\n"
    )
    assert '<ol start="3">' in render("3. a")
