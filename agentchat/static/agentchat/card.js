// Deciding. What the person saw is what is sent: the digest of the card, and the arguments if they edited them.

import { fragment, newKey, post } from './api.js';
import { hold } from './scroll.js';
import { alarm } from './words.js';

const shownAt = new Date();
const keys = new WeakMap();
const WORDS = { approve: 'yes', reject: 'no', answer: 'answer' };

export function start(replace) {
  document.addEventListener('click', (e) => click(e, replace));
  document.addEventListener('submit', (e) => {
    const does = e.target.dataset.doesOnSubmit;
    if (!does) return;
    e.preventDefault();
    const card = e.target.closest('.card');
    if (!card.hasAttribute('aria-busy')) decide(card, does, e.submitter, replace);
  });
  document.addEventListener('keydown', key);
}

function click(e, replace) {
  const button = e.target.closest('button');
  const card = button?.closest('.card');
  if (!card || button.getAttribute('aria-disabled') === 'true') return;
  if (button.dataset.to) step(card, button.dataset.to);
  else if (button.dataset.does) decide(card, button.dataset.does, button, replace);
  else if ('show' in button.dataset) { button.nextElementSibling.hidden = false; button.remove(); }
  else if ('copy' in button.dataset) copy(button);
}

async function copy(button) {
  const done = await navigator.clipboard?.writeText(button.dataset.copy).then(() => true, () => false);
  button.lastChild.textContent = done ? 'Copied' : 'Not copied';
}

/** The steps of a stub are siblings; the named one is shown. */
function step(card, name) {
  const edit = card.querySelector('[data-edited]');
  for (const one of card.querySelectorAll('[data-step-name]')) one.hidden = one.dataset.stepName !== name;
  const shown = card.querySelector(`[data-step-name="${name}"]`);
  hold(shown);
  if (name === 'edit' && edit) edit.focus();
  else (shown.querySelector('textarea, h4') ?? card.querySelector('.ask :is(h2, h3)')).focus();
}

/** Whether the card has gone from its first step to another one. */
export const inStep = (card) => card.querySelector('[data-step-name]:not([data-step-name="first"], [hidden])') !== null;

function key(e) {
  const field = e.target.closest('textarea, select, input:not([type="checkbox"], [type="radio"])');
  if (field?.matches('[data-reason]') && e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
    e.preventDefault();
    return field.form.querySelector('[type="submit"]').click(); // a click, so that `hold` can swallow it
  }
  const card = e.target.closest('.card[data-state="pending"]');
  if (!card || e.ctrlKey || e.metaKey || e.altKey || e.repeat) return;
  if (e.key === 'Escape' && inStep(card)) return step(card, 'first');
  if (field || document.body.dataset.keys === 'off' || !/^[0-9]$/.test(e.key)) return;
  const found = [...card.querySelectorAll('.key')].find((one) => one.textContent === e.key && one.checkVisibility());
  if (!found) return;
  e.preventDefault(); // or the digit is typed into the field that the step focuses
  found.closest('button, label').click();
}

function body(card, action) {
  const made = { action, digest: card.dataset.digest, displayed_at: (card.shownAt ?? shownAt).toISOString() };
  if (action === 'reject') made.reason = card.querySelector('[data-reason]')?.value ?? '';
  if (action === 'answer') made.answers = answers(card);
  const edited = card.querySelector('[data-edited]');
  if (action === 'approve' && edited && !edited.closest('[data-step-name]').hidden) {
    made.arguments = { ...JSON.parse(edited.dataset.arguments), command: edited.value };
  }
  return made;
}

function answers(card) {
  const given = {};
  for (const question of card.querySelectorAll('[data-question]')) {
    const choices = [...question.querySelectorAll('input:checked')].map((input) => input.value);
    given[question.dataset.question] = { choices, text: question.querySelector('[data-own]').value.trim() };
  }
  return given;
}

async function decide(card, action, button, replace) {
  const made = body(card, action);
  sending(card, button, true);
  const id = card.dataset.card;
  const answer = await post(`/approvals/${id}/decision/`, made, { key: keyFor(card, made) });
  if (answer.status === 422 || answer.status === 400) return refuse(card, button, answer.data.detail);
  if (answer.status === 0 || answer.status >= 500 || answer.status === 403) return unsent(card, button, action, answer);
  await redraw(card, answer, action, replace).catch(console.error);
  if (card.isConnected) sending(card, button, false); // it is still to be decided, or could not be fetched
}

/** The same decision again has the same key: pressing twice cannot count twice. */
function keyFor(card, made) {
  const { displayed_at: _, ...what } = made;
  const text = JSON.stringify(what);
  const kept = keys.get(card);
  if (kept?.text !== text) keys.set(card, { text, key: newKey() });
  return keys.get(card).key;
}

async function redraw(card, answer, action, replace) {
  const query = new URLSearchParams();
  if (answer.data.code === 'stale') query.set('stale', '1');
  else if (answer.status !== 200) query.set('tried', action);
  if (card.closest('[data-inbox]')) query.set('in', 'inbox');
  const chat = card.closest('[data-chat-of-card]')?.dataset.chatOfCard ?? document.body.dataset.chat;
  const drawn = (await fragment(`/chats/${chat}/items/${card.dataset.card}/fragment/?${query}`))?.querySelector('.piece');
  const old = document.querySelector(`.piece[data-item="${card.dataset.card}"]`); // an event may have redrawn it
  if (drawn && old && Number(drawn.dataset.seq) >= Number(old.dataset.seq ?? -1)) replace(old, drawn, answer);
}

function sending(card, button, on) {
  card.toggleAttribute('aria-busy', on);
  card.querySelector('[data-problem]').hidden = true;
  card.querySelector('[data-unsent]').hidden = true;
  for (const one of card.querySelectorAll('.stub button')) one.setAttribute('aria-disabled', String(on));
  if (on) { const spin = document.createElement('span'); spin.className = 'spin'; button?.prepend(spin); }
  else button?.querySelector('.spin')?.remove();
}

function refuse(card, button, text) {
  sending(card, button, false);
  const problem = card.querySelector('[data-problem]');
  problem.textContent = text ?? 'This was refused.';
  problem.hidden = false;
}

/** 503 comes with a sentence, such as that the disk is full. */
function unsent(card, button, action, answer) {
  sending(card, button, false);
  const why = answer.status === 503 ? answer.data.detail : undefined;
  const words = why ?? `Your ${WORDS[action]} did not reach the server.`;
  card.querySelector('[data-unsent-words]').textContent = words;
  card.querySelector('[data-unsent]').hidden = false;
  alarm(words);
}
