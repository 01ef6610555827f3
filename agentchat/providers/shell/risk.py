"""What a command would do, told from its words. It helps a person to look twice; it protects from nothing.

It reads the line as words, not as a shell does: what it cannot read for certain is at least medium.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from agentchat.providers.shell import knowledge
from agentchat.providers.shell.knowledge import Finding

LEVELS = ("low", "medium", "high", "destructive")
LOW: Finding = ("low", "Only reads or prints; it changes nothing.")
UNREAD: Finding = ("medium", "This line cannot be read for certain, so what it does is not known.")
FETCHED: Finding = ("high", "Runs a program straight from the internet that nobody has read.")
PIPED: Finding = ("high", "Runs whatever text it is given as a program.")
WRITES: Finding = ("medium", "Writes to a file, and may overwrite what it holds.")
DEVICE: Finding = ("destructive", "Writes straight to a device, which can destroy all data on it.")
HIDDEN: Finding = ("medium", "Runs a command inside another one.")
SETS: Finding = ("medium", "Changes the variables that the command runs with.")

OPERATORS = frozenset("();<>|&")
WRITING = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})
READING = frozenset({"<", "<<", "<<<", "<&"})
HARMLESS = re.compile(r"/dev/(null|stdout|stderr|tty)|\d+-?|-")
DEVICES = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|loop|md|dm-|disk)")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
NESTED = re.compile(r"\$\(|`")
BACKTICKS = re.compile(r"`[^`]*`")
EXECUTES = ("-exec", "-execdir", "-ok", "-okdir")
DEPTH = 6
LONGEST = 10_000


def classify(command: str) -> dict[str, str]:
    """The level of the worst thing that the command does, and what that is."""
    findings = list(_line(command, 0)) or [LOW]
    level = max((level for level, _ in findings), key=LEVELS.index)
    whys = dict.fromkeys(why for found, why in findings if found == level)
    return {"level": level, "why": " ".join(list(whys)[:2])}


def _line(command: str, depth: int) -> Iterator[Finding]:
    words = _words(command)
    if words is None:
        yield UNREAD
        return
    segments, redirections = _split(words)
    if knowledge.fetches_and_runs([word for segment, _ in segments for word in segment], command):
        yield FETCHED
    yield from redirections
    for segment, piped in segments:
        yield from _segment(segment, piped, depth)
    yield from _inside([*words, *BACKTICKS.findall(command)], depth)


def _words(command: str) -> list[str] | None:
    """None if it is too long or its quotes do not match."""
    if len(command) > LONGEST:
        return None
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return None


def _split(words: list[str]) -> tuple[list[tuple[list[str], bool]], list[Finding]]:
    """The simple commands of a line, each with whether a pipe feeds it; and what redirections write."""
    segments: list[tuple[list[str], bool]] = [([], False)]
    findings: list[Finding] = []
    rest = iter(words)
    for word in rest:
        if word in READING:
            next(rest, None)
        elif word in WRITING:
            findings += _written(next(rest, ""))
        elif word and OPERATORS.issuperset(word):
            findings += [WRITES] if ">" in word else [UNREAD] if "()" in word else []
            segments.append(([], word in ("|", "|&") or word.startswith("<<")))
        else:
            segments[-1][0].append(word)
    return segments, findings


def _written(target: str) -> list[Finding]:
    if HARMLESS.fullmatch(target):
        return []
    return [DEVICE if DEVICES.match(target) else WRITES]


def _inside(words: list[str], depth: int) -> Iterator[Finding]:
    """Commands within quotes and backticks."""
    for word in words:
        if NESTED.search(word):
            yield HIDDEN
            if depth < DEPTH:
                yield from _line(re.sub(r"\$\(|[`)\"']", " ; ", word), depth + 1)


def _segment(words: list[str], piped: bool, depth: int) -> Iterator[Finding]:
    """One simple command: its variables and wrappers are taken off until the program's name is in front."""
    if depth > DEPTH:
        yield UNREAD
        return
    while words and (words[0] in knowledge.KEYWORDS or ASSIGNMENT.match(words[0])):
        if words[0] in knowledge.LISTS:
            return
        if ASSIGNMENT.match(words[0]) and len(words) > 1:
            yield SETS
        words = words[1:]
    if not words:
        return
    name, rest = words[0].rpartition("/")[2], words[1:]
    if name in knowledge.WRAPPERS:
        yield from knowledge.wrapping(name)
        yield from _wrapped(rest, piped or (name == "xargs" and _is_shell(rest)), depth + 1)
    elif code := knowledge.code_of(name, rest):
        yield HIDDEN
        yield from _line(code, depth + 1) if depth < DEPTH else [UNREAD]
    elif piped and knowledge.interprets(name, rest):
        yield PIPED
    else:
        yield knowledge.judge(name, rest) or _unknown(name)
        yield from _executed(name, rest, depth)


def _wrapped(words: list[str], piped: bool, depth: int) -> Iterator[Finding]:
    """The command after a wrapper's options. A word that may be an option's value or the command is both."""
    option = ""
    while words and (words[0].startswith("-") or ASSIGNMENT.match(words[0]) or words[0][:1].isdigit()):
        option, words = words[0], words[1:]
    yield from _segment(words, piped, depth)
    if option in knowledge.TAKES_A_VALUE and depth < DEPTH:
        yield from _wrapped(words[1:], piped, depth + 1)


def _is_shell(words: list[str]) -> bool:
    return any(word.rpartition("/")[2] in knowledge.SHELLS for word in words)


def _executed(name: str, words: list[str], depth: int) -> Iterator[Finding]:
    """What `find` runs for each file; a `find` within that is not read."""
    runs = [number for number, word in enumerate(words) if word in EXECUTES] if name == "find" else []
    if len(runs) > DEPTH or (runs and depth >= DEPTH):
        yield UNREAD
    for number in runs[: DEPTH if depth < DEPTH else 0]:
        yield from _segment(words[number + 1 :], False, DEPTH)


def _unknown(name: str) -> Finding:
    if not re.fullmatch(r"[\w.+-]+", name):
        return UNREAD
    return ("medium", f"Runs {name[:60]}, which can do whatever this account can.")
