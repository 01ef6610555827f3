"""Both servers deflate what they send to a socket that offers it, and with a window that costs little."""

from __future__ import annotations

import pytest

from tests.cases.helpers import ended, hear, socket
from tests.services.client import Client
from tests.services.server import Server


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("--processes", "1")], ids=["daphne", "uvicorn"])
async def test_sockets_deflate_for_who_offers_it(arguments: tuple[str, ...]) -> None:
    with Server(*arguments) as server:
        client = Client(server)
        chat = client.chat('{"text": "A word, and another word. ", "chunk": 4}', provider="scripted")
        async with (
            socket(server, client, chat, 0) as deflated,
            socket(server, client, chat, 0, compression=None) as plain,
        ):
            [extension] = deflated.protocol.extensions
            assert extension.name == "permessage-deflate"
            assert extension.local_no_context_takeover
            assert plain.protocol.extensions == []
            first, second = await hear(deflated, ended), await hear(plain, ended)
            assert [event["seq"] for event in first] == [event["seq"] for event in second]
