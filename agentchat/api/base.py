"""What all views of the API share: JSON in, JSON out, whatever the client says it accepts."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

DEPTH = 100
"""How deep a body may nest; deeper than anything that people can check."""


class JSONBody(JSONParser):
    """JSON as RFC 8259 has it: UTF-8, no NaN, no name twice in one object, and not nested without end."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        try:
            text = codecs.decode(stream.read(), "utf-8")
            value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
        except RecursionError:
            raise ParseError("The body is nested too deeply.") from None
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}.") from error
        if _deeper_than(value, DEPTH):
            raise ParseError(f"The body is nested too deeply: more than {DEPTH} levels.")
        return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object names the same key twice")
    return made


def _deeper_than(value: Any, levels: int) -> bool:
    layer = [value]
    for _ in range(levels + 1):
        groups = [one.values() if isinstance(one, dict) else one for one in layer if isinstance(one, dict | list)]
        layer = [each for group in groups for each in group]
        if not layer:
            return False
    return True


class AlwaysTheSame(BaseContentNegotiation):
    """There is one representation, so nobody is refused over an Accept header."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        kind = request.content_type.partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == kind), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class View(APIView):
    # No docstring: it would stand in the OpenAPI document at every view. Who may come in is in the settings.
    content_negotiation_class = AlwaysTheSame
    parser_classes = [JSONBody]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            _ = request._request.body  # read at once, within the bound of the settings

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response.headers.setdefault("Cache-Control", "no-store")
        return super().finalize_response(request, response, *args, **kwargs)


def body(request: Request, shape: type[Serializer[Any]]) -> dict[str, Any]:
    """What the request says, checked. Raises a ValidationError, which becomes a 422."""
    return _checked(shape, request.data)


def query(request: Request, shape: type[Serializer[Any]]) -> dict[str, Any]:
    """The same for what stands behind the `?`."""
    return _checked(shape, request.query_params.dict())


def _checked(shape: type[Serializer[Any]], data: Any) -> dict[str, Any]:
    serializer = shape(data=data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
