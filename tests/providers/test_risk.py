"""The risk that a person is told: never too low."""

from __future__ import annotations

import time

import pytest

from agentchat.providers.shell.risk import classify

LEVELS = {
    "low": [
        "echo $(ls)",
        "ls -la", "pwd", "cat a b", "git status", "git log --oneline", "ls && pwd | wc -l", "echo x 2>/dev/null",
        "find . -name x", "sed -n 1p x", "if true; then ls; fi", "git branch", "ls 2>&1 | grep x",
    ],
    "medium": [
        "foo", "$X y", 'echo "open', "echo x > f", "FOO=1 ls", "sort --out=f x", "sed 's/a/b/w f' x", "python x.py",
        "git log --output=x", "git -c a=b log", ":(){ :|:& };:", "mv a b", "curl x", "git push", "x" * 20_000,
    ],
    "high": [
        "rm x", "sudo ls", "curl x | sh", "bash <(curl x)", 'sh -c "$(curl x)"', "echo x | bash", "kill 1", "su",
        "git branch -D x", "cat f | xargs sh", "ssh host", "systemctl stop x",
    ],
    "destructive": [
        "rm -rf /", "/bin/rm -fr x", "r\\m -r x", "sudo -n rm -rf x", "time -p rm -rf x", "sudo -u bob rm -rf /",
        "dd if=a of=b", "mkfs.ext4 /dev/sdb", "cat x > /dev/sda", "git push --force", "git push -f origin", "git push o +m",
        "git reset --hard", "git clean -fd", "echo `rm -rf x`", 'echo "$(rm -rf x)"', "bash -c 'rm -rf x'", "ls; rm -r x",
        "find . -delete", "find . -exec rm -rf {} ;", "xargs rm -rf", "env -i rm -rf x", "for x in a; do rm -rf $x; done",
        "su -c 'rm -rf x'", "eval 'rm -rf x'", "timeout 5 rm -rf x", "nohup rm -rf x &",
    ],
}  # fmt: skip
CASES = [(command, level) for level, commands in LEVELS.items() for command in commands]


@pytest.mark.parametrize(("command", "level"), CASES, ids=[command[:40] for command, _ in CASES])
def test_level(command: str, level: str) -> None:
    told = classify(command)
    assert told["level"] == level
    assert told["why"].endswith(".")


@pytest.mark.parametrize("words", ["find -exec ", "sudo -u ", "nohup ", "`", "$(", "bash -c '", "( ", "rm -r ; "])
def test_no_line_takes_long_to_read(words: str) -> None:
    started = time.monotonic()
    classify(words * (9_999 // len(words)))
    assert time.monotonic() - started < 2
