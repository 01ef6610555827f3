"""Markdown as safe HTML, block by block: each top-level block is rendered once, when nothing later can change it.

What makes any chunking give the same HTML as one shot: carriage returns are normalised, raw HTML and reference
definitions are off (a definition at the end would change a link at the beginning), only the open tail is parsed, and
all of it but its last top-level block is given out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Number, String, _TokenType
from pygments.util import ClassNotFound

SMALL = 2_000
"""A tail up to this length is parsed at every line; a longer one only when it has grown by half."""
HIGHLIGHT_CHARS = 100_000
_LINE = re.compile(r"\r\n|\r(?!\Z)|\n")
_TAGS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6",
    "hr", "li", "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {
    "a": {"href", "title"}, "ol": {"start"}, "pre": {"tabindex"}, "span": {"class"}, "figure": {"class"},
    "div": {"class", "tabindex"}, "td": {"class"}, "th": {"class"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Block:
    """A finished block. `end` is how many code points of the source it and all before it cover."""

    html: str
    end: int


class MarkdownStream:
    """Takes text as it comes. `done` code points of the source were given out as blocks before."""

    def __init__(self, done: int = 0) -> None:
        self._done = done
        self._parts: list[str] = []
        self._chars = self._parsed = 0

    def feed(self, text: str) -> list[Block]:
        """The blocks that this text finished."""
        self._parts.append(text)
        self._chars += len(text)
        if "\n" not in text and "\r" not in text or not self._is_worth_parsing():
            return []
        return self._emit(last=False)

    def finish(self) -> list[Block]:
        """The rest."""
        return self._emit(last=True)

    def _is_worth_parsing(self) -> bool:
        """Parsing a long tail at every line would be quadratic."""
        return self._chars <= SMALL or self._chars >= self._parsed * 3 // 2

    def _emit(self, last: bool) -> list[Block]:
        tail = "".join(self._parts)
        lines, ends = _lines(tail, last)
        blocks = list(_blocks(lines, ends, last))
        used = blocks[-1].end if blocks else 0
        self._parts, self._chars = [tail[used:]], len(tail) - used
        self._parsed = self._chars
        finished = [Block(block.html, self._done + block.end) for block in blocks]
        self._done += used
        return finished


def render(text: str) -> str:
    stream = MarkdownStream()
    return "".join(block.html for block in [*stream.feed(text), *stream.finish()])


def _lines(text: str, last: bool) -> tuple[list[str], list[int]]:
    """The complete lines (all lines, if nothing follows), and where each ends in the source."""
    lines, ends, start = [], [], 0
    for match in _LINE.finditer(text):
        lines.append(text[start : match.start()])
        start = match.end()
        ends.append(start)
    if last and start < len(text):
        lines.append(text[start:].removesuffix("\r"))
        ends.append(len(text))
    return lines, ends


def _blocks(lines: list[str], ends: list[int], last: bool) -> Iterator[Block]:
    """Top-level blocks, each up to where the next begins; the last only if nothing follows."""
    groups = list(_groups(_parser.parse("\n".join(lines))))
    for number, (line, tokens) in enumerate(groups):
        del line
        if number + 1 < len(groups):
            yield Block(_html(tokens), ends[groups[number + 1][0] - 1])
        elif last:
            yield Block(_html(tokens), ends[-1])


def _groups(tokens: Iterable[Token]) -> Iterator[tuple[int, list[Token]]]:
    """The first line and the tokens of each top-level block."""
    group: list[Token] = []
    line = depth = 0
    for token in tokens:
        if depth == 0:
            group, line = [], (token.map or [line])[0]
        group.append(token)
        depth += token.nesting
        if depth == 0:
            yield line, group


def _html(tokens: list[Token]) -> str:
    html = _parser.renderer.render(tokens, _parser.options, {})
    return nh3.clean(
        html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )  # fmt: skip


# How our tokens are rendered


class _Formatter(HtmlFormatter):  # type: ignore[type-arg]
    """Four classes are enough, and they are those of the stylesheet."""

    def _get_css_class(self, ttype: _TokenType) -> str:
        for kind, name in ((Keyword, "tok-k"), (String, "tok-s"), (Number, "tok-n"), (Comment, "tok-c")):
            if ttype in kind:
                return name
        return ""

    _get_css_classes = _get_css_class


def _code(code: str, language: str) -> str:
    caption = f"<figcaption>{escape(language)}</figcaption>" if language else ""
    return f'<figure class="code">{caption}<pre tabindex="0">{_highlighted(code, language)}</pre></figure>\n'


def _highlighted(code: str, language: str) -> str:
    if not language or len(code) > HIGHLIGHT_CHARS:
        return escape(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return escape(code)
    return str(highlight(code, lexer, _Formatter(nowrap=True)))


def _fence(tokens: list[Token], at: int, *rest: object) -> str:
    words = tokens[at].info.split()
    return _code(tokens[at].content, words[0][:40] if words else "")


def _image(tokens: list[Token], at: int, *rest: object) -> str:
    """Nothing is loaded from elsewhere: a picture becomes a link to it."""
    source, words = str(tokens[at].attrGet("src") or ""), tokens[at].content or "picture"
    return f'<a href="{escape(source)}">{escape(words)}</a>'


def _cell(tag: str) -> object:
    def opened(tokens: list[Token], at: int, *rest: object) -> str:
        right = "right" in str(tokens[at].attrGet("style") or "")
        return f'<{tag} class="r">' if right else f"<{tag}>"

    return opened


def _table_open(*arguments: object) -> str:
    return '<div class="table" tabindex="0"><table>\n'


def _table_close(*arguments: object) -> str:
    return "</table></div>\n"


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("reference")
    rules = {
        "fence": _fence,
        "code_block": _fence,
        "image": _image,
        "table_open": _table_open,
        "table_close": _table_close,
        "th_open": _cell("th"),
        "td_open": _cell("td"),
    }
    parser.renderer.rules.update(rules)  # type: ignore[attr-defined]
    return parser


_parser = _make_parser()
