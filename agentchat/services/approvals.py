"""Deciding: the only code that makes a Resolution. The insert is the lock: one row per request, first commit wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from agentchat import conf, wire
from agentchat.events import Action, Cause, ItemStatus, Kind, RunStatus, Scope, Via
from agentchat.exceptions import AgentGone, AlreadyResolved, Expired, Invalid, NotFound, Stale, Stopped, Undecidable
from agentchat.journal import append, process
from agentchat.journal.entry import event
from agentchat.models import Chat, OutputItem, Resolution, clock
from agentchat.services import answers as given_answers
from agentchat.services import canonical, chain, clean, parking, permissions

_REFUSALS: Mapping[str, type[Undecidable]] = {
    Cause.TIMEOUT: Expired,
    Cause.STOPPED: Stopped,
    Cause.AGENT_GONE: AgentGone,
}
EXPIRED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody wants to decide. `digest` is that of the arguments that they saw."""

    action: str
    digest: str
    reason: str = ""
    answers: Any = None
    arguments: Any = None
    """The arguments as they edited them; None if they did not."""
    scope: str = Scope.ONCE
    displayed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Checked:
    action: str
    digest: str
    final_digest: str
    reason: str = ""
    answers: Any = None
    arguments: str = ""
    scope: str = Scope.ONCE
    displayed_at: datetime | None = None


def decide(user: Any, item_id: UUID, decision: Decision, *, via: Via, proof: str) -> Resolution:
    """Decide a request as a person. The same decision by the same person again gives the stored one.

    Raises NotFound (also for what is not theirs), Invalid, Stale (another digest), and, with `context["resolution"]`:
    AlreadyResolved, Expired, Stopped, AgentGone.
    """
    with transaction.atomic():
        item = _locked(OutputItem.objects.visible_to(user), item_id)
        resolution, refusal = _decide(item, user, decision, via, proof)
    if refusal:
        raise refusal
    return resolution


def _decide(
    item: OutputItem, user: Any, decision: Decision, via: Via, proof: str
) -> tuple[Resolution, Undecidable | None]:
    checked = _check(item, decision)
    if existing := Resolution.objects.filter(item=item).first():
        return existing, None if _is_repeat(existing, user, checked) else _refusal(existing)
    if checked.digest != item.digest:
        raise Stale()
    if item.status != ItemStatus.PENDING:
        raise AgentGone()
    if item.expires_at and item.expires_at <= clock.now():
        expired = _insert(item, _nobody(item), Cause.TIMEOUT)
        return expired, _refusal(expired)
    made = _insert(item, checked, Cause.PERSON, via, user=user, proof=proof)
    return made, None if made.decided_by_id == user.pk and _is_repeat(made, user, checked) else _refusal(made)


def close(item_id: UUID, cause: Cause) -> Resolution:
    """Close a request that nobody decided: a timeout, a stop, or an agent that is gone. Gives the winner if there is one.

    A timeout before its time (by the database's clock) raises Invalid.
    """
    with transaction.atomic():
        item = _locked(OutputItem.objects.all(), item_id)
        if existing := Resolution.objects.filter(item=item).first():
            return existing
        if cause == Cause.TIMEOUT and (item.expires_at is None or item.expires_at > clock.now()):
            raise Invalid("This request has not expired yet.")
        return _insert(item, _nobody(item), cause)


def expire() -> None:
    """Close what expired while no worker held its run: nobody else would."""
    parked = {"message__run__status": RunStatus.WAITING, "message__run__worker": ""}
    over = OutputItem.objects.pending().filter(expires_at__lte=clock.now(), **parked)
    for item_id in over.order_by("expires_at").values_list("pk", flat=True)[:EXPIRED_AT_ONCE]:
        close(item_id, Cause.TIMEOUT)


def allow_by_mode(item_id: UUID) -> Resolution:
    """The chat's mode lets this call through; recorded like every other decision."""
    with transaction.atomic():
        item = _locked(OutputItem.objects.all(), item_id)
        allowed = _Checked(Action.APPROVE, item.digest, item.digest)
        return _insert(item, allowed, Cause.MODE, rule=item.message.chat.approval_mode)


def _locked(items: Any, item_id: UUID) -> OutputItem:
    """The request, with its chat's row locked: that row numbers the events and orders the chain."""
    chat_id = items.requests().filter(pk=item_id).values_list("message__chat", flat=True).first()
    if chat_id is None:
        raise NotFound()
    chat = Chat.objects.locked().get(pk=chat_id)
    item: OutputItem = OutputItem.objects.select_related("message").defer("text", "html").get(pk=item_id)
    item.message.chat = chat
    return item


def _check(item: OutputItem, decision: Decision) -> _Checked:
    """Raises Invalid if the decision does not fit the request."""
    question = permissions.is_question(item.name, item.request)
    fitting = (Action.ANSWER, Action.REJECT) if question else (Action.APPROVE, Action.REJECT)
    if decision.action not in fitting:
        raise Invalid(f"This request takes {' or '.join(fitting)}, not {decision.action!r}.")
    if decision.scope != Scope.ONCE:
        raise Invalid("Only the scope `once` is offered for this request.")
    if len(decision.reason) > conf.REASON_CHARS:
        raise Invalid(f"A reason has at most {conf.REASON_CHARS:,} characters; this has {len(decision.reason):,}.")
    arguments, final_digest = _edited(decision)
    return _Checked(
        decision.action,
        decision.digest,
        final_digest,
        reason=clean.text(decision.reason.strip()),
        answers=_answers(item, decision),
        arguments=arguments,
        displayed_at=decision.displayed_at,
    )


def _edited(decision: Decision) -> tuple[str, str]:
    """The edited arguments and the digest of what may run; no arguments if they mean the same as what was shown."""
    if decision.arguments is None:
        return "", decision.digest
    if decision.action != Action.APPROVE:
        raise Invalid("Arguments can be edited only by approving.")
    text = clean.arguments(decision.arguments)
    final = canonical.digest(text)
    return ("", final) if final == decision.digest else (text, final)


def _answers(item: OutputItem, decision: Decision) -> Any:
    if decision.action != Action.ANSWER:
        if decision.answers is not None:
            raise Invalid("Answers come with the action `answer`.")
        return None
    return given_answers.checked(decision.answers, (item.request or {}).get("questions") or [])


def _nobody(item: OutputItem) -> _Checked:
    return _Checked(Action.REJECT, item.digest, item.digest)


def _is_repeat(existing: Resolution, user: Any, wanted: _Checked) -> bool:
    mine = existing.cause == Cause.PERSON and existing.decided_by_id == user.pk
    stored = (existing.action, existing.digest, existing.final_digest, existing.answers)
    return mine and stored == (wanted.action, wanted.digest, wanted.final_digest, wanted.answers)


def _refusal(winner: Resolution) -> Undecidable:
    error = _REFUSALS.get(winner.cause, AlreadyResolved)
    return error(resolution=wire.resolution(winner, getattr(winner, "receipt", None)))


def _insert(
    item: OutputItem, checked: _Checked, cause: Cause, via: Via = Via.SYSTEM, user: Any = None, **more: str
) -> Resolution:
    """Insert, or give the row that was there first."""
    row = Resolution(
        item=item,
        chat=item.message.chat,
        tool=item.name,
        cause=cause,
        decided_via=via,
        decided_by=user,
        decided_by_name=user.get_username() if user else "",
        decided_at=clock.now(),
        **{name: getattr(checked, name) for name in _Checked.__slots__},
        **more,
    )
    chain.seal(row)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return Resolution.objects.get(item=item)
    _announce(item, row)
    return row


def _announce(item: OutputItem, row: Resolution) -> None:
    decided = wire.resolution(row)
    status = wire.status(item.status, decided)
    chat = item.message.chat
    payload = {"item": str(item.pk), "status": str(status), "resolution": decided}
    append.append(chat, [event(Kind.APPROVAL_RESOLVED, **payload), *parking.unpark(item.message_id)])
    transaction.on_commit(lambda: process.signal(f"user:{chat.owner_id}"))
