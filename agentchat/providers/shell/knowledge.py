"""What is known of programs: which only read, which change, which cannot be undone."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

Finding = tuple[str, str]
"""A level and the sentence that says why."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"})
INTERPRETERS = SHELLS | {"python", "python3", "perl", "ruby", "node", "php", "lua"}
FETCHERS = frozenset({"curl", "wget", "fetch"})
KEYWORDS = _words("{ } ! if then else elif fi while until do done case esac for select function")
LISTS = frozenset({"for", "select", "case"})
"""What follows these is a list of words, not a command."""
WRAPPERS = _words("sudo doas env nohup nice ionice time timeout command builtin exec setsid stdbuf xargs watch")
TAKES_A_VALUE = _words("-u -g -n -s -k -I -P -L -d -C -h -p --user --group --signal --chdir")
READ = _words(
    "ls cat pwd echo printf head tail wc grep egrep fgrep stat file which whereis type date whoami id groups "
    "uname df du free ps uptime tree diff cmp comm cut tr nl tac rev fold column basename dirname realpath "
    "readlink true false test [ sleep cd seq md5sum sha1sum sha256sum b2sum cksum od hexdump xxd strings jq "
    "printenv find sort uniq rg pushd popd dirs help wait : expr bc cal nproc lscpu lsblk lsof ss netstat "
    "getent locale tty exit"
)
GIT_READ = _words("status log diff show blame shortlog describe rev-parse ls-files ls-tree grep")
SED_READS = re.compile(r"[\d,$~+]*[pd=]|s([/|,#])[^;]*?\1[^;]*?\1[gp\d]*")
"""Scripts of sed that cannot write: lines printed or left out, and a replacement."""
WRITING_OPTIONS = {
    "sort": ("-o", "--output", "--compress-program"),
    "tree": ("-o",),
    "date": ("-s", "--set"),
    "rg": ("--pre",),
    "find": ("-fprint", "-fprintf", "-fls", "-fprint0"),
    "xxd": ("-r",),
    "git": ("--output", "--ext-diff", "-O"),
}

GROUPS = (
    (
        "dd shred wipefs blkdiscard fdisk sfdisk parted mkswap",
        "destructive",
        "Writes straight to a disk or over a file; what was there is lost.",
    ),
    ("truncate rmdir unlink srm", "high", "Deletes content for good; there is no way back."),
    ("kill pkill killall", "high", "Ends programs that run, and what they had not saved is lost."),
    ("shutdown reboot halt poweroff init", "high", "Switches this machine off or restarts it."),
    (
        "ssh scp rsync sftp nc ncat telnet ftp",
        "high",
        "Connects to another machine, and can send data there or act on it.",
    ),
    (
        "crontab at systemctl service useradd userdel passwd mount umount iptables",
        "high",
        "Changes how this machine is set up.",
    ),
    ("curl wget fetch", "medium", "Contacts another machine, and can send data there."),
    ("chmod chown chgrp setfacl", "medium", "Changes who may read, change or run files."),
    (
        "cp mv mkdir touch ln tee install patch tar unzip gzip gunzip zip",
        "medium",
        "Creates or changes files, and may overwrite some.",
    ),
    (
        "apt apt-get dnf yum apk pip pip3 npm yarn pnpm cargo gem brew uv",
        "medium",
        "Can download software and run its install scripts.",
    ),
    ("eval source .", "medium", "Runs text as commands; what they are is not seen here."),
    ("su sudo doas", "high", "Runs with the rights of another account, mostly those of the administrator."),
)
"""Programs that are all of one kind, the level, and the sentence that says why."""
KNOWN: dict[str, Finding] = {name: (level, why) for names, level, why in GROUPS for name in names.split()}


def judge(name: str, words: list[str]) -> Finding | None:
    """What a program does with these words; None if it is not known."""
    if special := SPECIAL.get(name):
        return special(words)
    if name.startswith("mkfs"):
        return ("destructive", "Formats a disk; everything on it is lost.")
    if name in READ:
        return _reading(name, words)
    return KNOWN.get(name)


def wrapping(name: str) -> list[Finding]:
    """What a wrapper itself adds to the command within."""
    return [KNOWN[name]] if name in ("sudo", "doas") else []


def code_of(name: str, words: list[str]) -> str:
    """The commands that a shell is given as an argument: `bash -c …`, `eval …`."""
    if name == "eval":
        return " ".join(words)
    if name in SHELLS or name == "su":
        for number, word in enumerate(words[:-1]):
            if word.startswith("-") and not word.startswith("--") and "c" in word:
                return words[number + 1]
    return ""


def interprets(name: str, words: list[str]) -> bool:
    """Whether a program runs what a pipe brings."""
    return name in INTERPRETERS and not [word for word in words if not word.startswith("-")]


def fetches_and_runs(words: list[str], command: str) -> bool:
    """Whether a line fetches something and hands it to an interpreter."""
    apart = command.replace("(", " ").replace("`", " ").split()
    names = {word.rpartition("/")[2] for word in [*words, *apart]}
    handed = any(mark in command for mark in ("|", "<(", "$(", "`"))
    return handed and bool(names & FETCHERS) and bool(names & (INTERPRETERS | {"eval", "source"}))


def _reading(name: str, words: list[str]) -> Finding:
    writing = WRITING_OPTIONS.get(name, ())
    if any(_is(word, option) for word in words for option in writing):
        return ("medium", f"With these options {name} writes files, changes settings or runs a program.")
    if name == "find" and "-delete" in words:
        return ("destructive", "Deletes every file that is found, for good and without asking.")
    if name in ("uniq", "xxd") and len([word for word in words if not word.startswith("-")]) > 1:
        return ("medium", "Writes to a file, and may overwrite what it holds.")
    return ("low", "Only reads or prints; it changes nothing.")


def _is(word: str, option: str) -> bool:
    """Whether a word gives this option, also shortened, with a value, or among other letters."""
    head = word.split("=")[0]
    if len(option) == 2:
        return word.startswith("-") and not word.startswith("--") and option[1] in word
    return word.startswith(option) or (len(head) > 3 and option.startswith(head))


def _flags(words: list[str]) -> set[str]:
    """Long options as they are, short ones letter by letter."""
    found: set[str] = set()
    for word in words:
        if word.startswith("--"):
            found.add(word.split("=")[0])
        elif word.startswith("-"):
            found.update(word[1:])
    return found


def _rm(words: list[str]) -> Finding:
    flags = _flags(words)
    if flags & {"r", "R", "--recursive"}:
        asking = "" if not flags & {"f", "--force"} else " and without asking"
        return ("destructive", f"Deletes folders with all that is in them, for good{asking}.")
    return ("high", "Deletes files for good; there is no way back.")


def _sed(words: list[str]) -> Finding:
    if any(word.startswith(("-i", "--in-place")) for word in words):
        return ("medium", "Changes files in place.")
    script = next((word for word in words if not word.startswith("-")), "")
    if SED_READS.fullmatch(script) and {"-n", "-E", "-r"}.issuperset(w for w in words if w.startswith("-")):
        return ("low", "Only reads or prints; it changes nothing.")
    return ("medium", "Runs a script of sed, which can write files.")


def _git(words: list[str]) -> Finding:
    while words[:1] and words[0] in ("-C", "--no-pager", "-P"):
        words = words[2 if words[0] == "-C" else 1 :]
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb in ("push", "clean", "reset", "checkout", "restore", "branch", "stash", "filter-branch"):
        return _git_change(verb, rest)
    if verb in GIT_READ and not any(_is(*pair) for pair in product(rest, WRITING_OPTIONS["git"])):
        return ("low", "Only reads the repository; it changes nothing.")
    if verb.startswith("-"):
        return ("medium", "Runs git with settings of its own, which can run other programs.")
    return ("medium", "Changes the repository or its files.")


def _git_change(verb: str, rest: list[str]) -> Finding:
    flags = _flags(rest)
    if verb == "push":
        return _git_push(rest, flags)
    forced = flags & {"f", "--force"}
    if (verb == "reset" and "--hard" in flags) or (verb == "clean" and forced):
        return ("destructive", "Throws away changes that were not committed; they cannot be brought back.")
    if verb in ("checkout", "restore") and ("--" in rest or "." in rest or forced):
        return ("destructive", "Throws away changes that were not committed; they cannot be brought back.")
    if verb == "filter-branch" or (verb == "stash" and rest[:1] in (["drop"], ["clear"])):
        return ("high", "Deletes or rewrites work that the repository holds.")
    if verb == "branch":
        return _git_branch(rest, flags)
    return ("medium", "Changes the repository or its files.")


def _git_push(rest: list[str], flags: set[str]) -> Finding:
    forced = flags & {"f", "d", "--force", "--force-with-lease", "--mirror", "--delete", "--prune"}
    if forced or any(word.startswith(("+", ":")) for word in rest):
        return ("destructive", "Overwrites or deletes what others have in the remote repository.")
    return ("medium", "Sends commits to another machine, where others see them.")


def _git_branch(rest: list[str], flags: set[str]) -> Finding:
    if flags & {"d", "D", "--delete", "M", "--force", "f"}:
        return ("high", "Deletes or replaces branches; commits that only they hold are lost.")
    listing = flags <= {"a", "r", "v", "--list", "--all", "--show-current"}
    if not rest or (listing and rest[0].startswith("-")):
        return ("low", "Only reads the repository; it changes nothing.")
    return ("medium", "Changes the repository or its files.")


SPECIAL: dict[str, Callable[[list[str]], Finding]] = {"rm": _rm, "sed": _sed, "git": _git}
