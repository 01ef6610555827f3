"""One block of markdown as safe HTML: what we parse, how it is rendered, and what the sanitiser lets through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from html import escape
from itertools import groupby

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Number, String, _TokenType

Rule = Callable[..., str]

HIGHLIGHT_CHARS = 30_000
"""Longer code is not highlighted."""
HIGHLIGHTED = {
    "bash", "c", "c++", "cpp", "css", "diff", "django", "docker", "dockerfile", "go", "golang", "graphql",
    "html", "ini", "java", "javascript", "jinja", "js", "json", "jsx", "kotlin", "lua", "make", "makefile",
    "markdown", "md", "nginx", "php", "perl", "powershell", "py", "python", "python3", "rb", "ruby", "rs",
    "rust", "scss", "sh", "shell", "sql", "swift", "terraform", "toml", "ts", "tsx", "typescript", "xml",
    "yaml", "yml", "zsh",
}  # fmt: skip
"""Languages whose lexers are well worn; a strange one could be slow on hostile text."""
DEEPEST = 40
"""How deep blocks may be nested. The parser leaves out what is deeper, so such a block is shown as it was written."""

_WEB = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_KINDS: tuple[tuple[_TokenType, str], ...] = (
    (Keyword, "tok-k"),
    (String, "tok-s"),
    (Number, "tok-n"),
    (Comment, "tok-c"),
)
_TAGS = {
    "a", "blockquote", "br", "code", "div", "em", "figcaption", "figure", "h3", "h4", "hr", "li", "ol", "p",
    "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {
    "a": {"href", "title"}, "ol": {"start"}, "pre": {"tabindex"}, "span": {"class"}, "figure": {"class"},
    "div": {"class", "tabindex"}, "td": {"class"}, "th": {"class"},
}  # fmt: skip


def blocks(source: str) -> list[Token]:
    """The blocks only. What stands inside them is parsed when they are rendered: an open text is looked at more often."""
    _apply(_BLOCKS, state := StateCore(source, parser, {}))
    return state.tokens


def _apply(rules: Iterable[Callable[[StateCore], None]], state: StateCore) -> None:
    for rule in rules:
        rule(state)


def html(tokens: list[Token], source: str) -> str:
    """Safe HTML of one top-level block, which was written as `source`."""
    if max(token.level for token in tokens) >= DEEPEST - 1:
        return code(source.rstrip(" \t\n") + "\n", "")
    _apply(_INSIDE, state := StateCore("", parser, {}, tokens))
    for token in state.tokens:
        token.children = list(_with_our_links(token.children)) if token.children else token.children
    made = parser.renderer.render(tokens, parser.options, {})
    return nh3.clean(
        str(made), tags=_TAGS, attributes=_ATTRIBUTES, url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )  # fmt: skip


def _with_our_links(tokens: list[Token]) -> Iterator[Token]:
    """Only links that lead to the web stay links; a picture inside a link is its words."""
    drop = inside = False
    for token in tokens:
        if token.type == "link_open":
            inside, drop = True, not _leads_out(token.attrGet("href"))
        elif token.type == "image" and inside and not drop:
            token = _words(token)
        if token.type not in ("link_open", "link_close") or not drop:
            yield token
        if token.type == "link_close":
            inside = drop = False


def _leads_out(url: object) -> bool:
    return _WEB.match(str(url or "")) is not None


def _words(image: Token) -> Token:
    return Token("text", "", 0, content=image.content or "picture")


def _image(tokens: list[Token], at: int, *rest: object) -> str:
    """Nothing is loaded from elsewhere: a picture becomes a link to it."""
    words, source = escape(tokens[at].content or "picture"), tokens[at].attrGet("src")
    return f'<a href="{escape(str(source))}">{words}</a>' if _leads_out(source) else words


# Code


def code(text: str, language: str) -> str:
    caption = f"<figcaption>{escape(language)}</figcaption>" if language else ""
    shown = highlighted(text, language) or escape(text, quote=False)
    return f'<figure class="code">{caption}<pre tabindex="0"><code>{shown}</code></pre></figure>\n'


def highlighted(text: str, language: str) -> str:
    """The code with classes for colours; empty if this is not a language we know."""
    if language.lower() not in HIGHLIGHTED or len(text) > HIGHLIGHT_CHARS:
        return ""
    pairs = [(_kind(kind), piece) for kind, piece in _lexer(language.lower()).get_tokens(text)]
    if "".join(piece for _, piece in pairs) != text:
        return ""
    runs = groupby(pairs, key=lambda pair: pair[0])
    return "".join(_span(kind, "".join(piece for _, piece in run)) for kind, run in runs)


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


def _kind(kind: _TokenType) -> str:
    return next((name for parent, name in _KINDS if kind in parent), "")  # type: ignore[comparison-overlap]


def _span(name: str, text: str) -> str:
    text = escape(text, quote=False)
    return f'<span class="{name}">{text}</span>' if name else text


def _fence(tokens: list[Token], at: int, *rest: object) -> str:
    words = tokens[at].info.split()
    return code(tokens[at].content, words[0][:40] if words else "")


# Headings and tables


def _heading(form: str) -> Rule:
    """The page has its own first and second level."""

    def rule(tokens: list[Token], at: int, *rest: object) -> str:
        return form.format("h3" if tokens[at].tag in ("h1", "h2") else "h4")

    return rule


def _cell(tag: str) -> Rule:
    def rule(tokens: list[Token], at: int, *rest: object) -> str:
        right = "right" in str(tokens[at].attrGet("style") or "")
        return f'<{tag} class="r">' if right else f"<{tag}>"

    return rule


def _constant(text: str) -> Rule:
    return lambda *arguments: text


_RULES: dict[str, Rule] = {
    "fence": _fence,
    "code_block": _fence,
    "image": _image,
    "heading_open": _heading("<{}>"),
    "heading_close": _heading("</{}>\n"),
    "table_open": _constant('<div class="table" tabindex="0"><table>\n'),
    "table_close": _constant("</table></div>\n"),
    "th_open": _cell("th"),
    "td_open": _cell("td"),
}


def _make_parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST})
    made.enable(["table", "strikethrough"]).disable("reference")
    made.renderer.rules.update(_RULES)  # type: ignore[attr-defined]
    return made


parser = _make_parser()
_BLOCKS, _INSIDE = parser.core.ruler.getRules("")[:2], parser.core.ruler.getRules("")[2:]
"""Of the parser's steps: `normalize` and `block`; `inline` and those after it."""
