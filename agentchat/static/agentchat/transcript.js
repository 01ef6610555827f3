// Events become changes of the page. New text is put in at once; everything else is fetched as the server draws it.
// Each element says in data-seq up to which event it is true, so that nothing is shown twice.

import { fragment } from './api.js';
import { changing, hold, toEnd } from './scroll.js';
import { append } from './terminal.js';
import { codePoints, dropCodePoints, say } from './words.js';

const chat = document.body.dataset.chat;
const base = `/chats/${chat}`;
const PLACE_EVERY = 5000;
const ENDED = ['completed', 'failed', 'cancelled', 'interrupted'];
let cursor = Number(document.body.dataset.cursor);
let queue = Promise.resolve();

export const at = () => cursor;
const piece = (id) => document.querySelector(`.piece[data-item="${id}"]`);
const ofOutput = (id) => document.querySelector(`.piece[data-output~="${id}"]`) ?? document.querySelector(`[data-term="${id}"]`)?.closest('.piece');
const turnOf = (message) => document.getElementById(`turn-${message}`);
const seqOf = (element) => Number(element?.dataset.seq ?? -1);

/** Frames one after another: a fetch in one must not be overtaken by the next. */
export function take(frame) {
  queue = queue.then(() => (frame.type === 'snapshot' ? redraw() : apply(frame))).catch(recover);
  return queue;
}

/** No later frame has to come for the page to be true again. */
async function recover(error) {
  for (;;) {
    console.warn(error);
    await new Promise((done) => setTimeout(done, 2000));
    try { return await redraw(); } catch (again) { error = again; }
  }
}

async function redraw() {
  const dock = await fragment(`${base}/dock/`);
  const drawn = await fragment(`${base}/transcript/`);
  if (!drawn || !dock) return gone();
  changing(() => {
    for (const one of drawn.querySelectorAll('.piece')) keep(piece(one.dataset.item), one);
    document.getElementById('transcript').replaceChildren(drawn);
    document.getElementById('dock').replaceChildren(dock);
  });
  mirrorPlan();
  lookAtPlace();
  cursor = Math.min(...[...document.querySelectorAll('[data-seq]')].map(seqOf)); // the parts were drawn at different events
}

async function apply(frame) {
  const todo = { items: new Map(), turns: new Set(), dock: false, asks: new Set(), said: '' };
  for (const event of frame.events) {
    if (event.seq > cursor) (HANDLERS[event.kind] ?? (() => {}))(event, todo);
  }
  cursor = Math.max(cursor, frame.cursor);
  await Promise.all([...todo.turns].map((id) => drawTurn(id)));
  for (const [id, event] of todo.items) await drawItem(id, event);
  if (todo.dock) await drawDock();
  mirrorPlan();
  todo.asks.forEach(sayAsk);
  if (todo.said) say(todo.said);
}

function sayAsk(id) {
  const card = piece(id)?.querySelector('.card[data-state="pending"]');
  if (!card) return;
  const words = ['h2', '.cmd pre', '.strip .risk'].map((part) => card.querySelector(part)?.textContent.trim().slice(0, 120));
  say(`${document.body.dataset.agent} asks: ${words.filter(Boolean).join(' ')}`);
}

/** Beside the transcript stands the latest plan. */
function mirrorPlan() {
  const plan = [...document.querySelectorAll('.piece[data-type="plan"]')].at(-1);
  const beside = document.querySelector('[data-plan]');
  if (!plan || !beside) return;
  beside.querySelector('h2').textContent = plan.querySelector('summary').textContent.trim();
  beside.querySelector('ol').replaceWith(plan.querySelector('ol').cloneNode(true));
  beside.hidden = false;
}

const HANDLERS = {
  'message.added': (event, todo) => { if (event.message.role === 'assistant') todo.dock = true; },
  'message.changed': (event, todo) => { if (event.changes.removed) todo.dock = true; else todo.turns.add(event.message); },
  'item.added': (event, todo) => {
    if (!turnOf(event.message)) return todo.turns.add(event.message);
    todo.items.set(event.item.call ?? event.item.id, event);
  },
  'item.delta': (event, todo) => { if (!todo.items.has(event.item)) delta(event, todo); },
  'item.block': (event, todo) => { if (!todo.items.has(event.item)) block(event, todo); },
  'item.changed': (event, todo) => dirty(event, todo),
  'approval.requested': (event, todo) => { dirty(event, todo); todo.dock = true; todo.asks.add(event.item); },
  'approval.resolved': (event, todo) => { dirty(event, todo); todo.dock = true; },
  'approval.delivered': (event, todo) => { dirty(event, todo); todo.dock = true; todo.said ||= 'Delivered'; },
  'run.changed': (event, todo) => {
    todo.dock = true;
    if (event.changes.status === 'running' || ENDED.includes(event.changes.status)) todo.turns.add(event.message);
    if (ENDED.includes(event.changes.status)) todo.said = event.changes.status === 'completed' ? 'Finished' : `Ended: ${event.changes.status}`;
  },
  'chat.changed': (event) => { document.querySelector('[data-title]').textContent = event.chat.title || 'Untitled chat'; },
  'chat.deleted': () => gone(),
};

function gone() { location.assign('/'); }

function dirty(event, todo) {
  const found = piece(event.item) ?? ofOutput(event.item);
  if (found) todo.items.set(found.dataset.item, event);
}

// Text that grows

function delta(event, todo) {
  const output = document.querySelector(`[data-term="${event.item}"]`);
  const element = output ?? piece(event.item);
  const owner = element?.closest('.piece');
  if (!element) return;
  const have = Number(element.dataset.length);
  const gap = event.offset - have;
  const open = output ?? element.querySelector('[data-open]');
  if ((gap > 0 && !event.skipped) || !open) return void todo.items.set(owner.dataset.item, event);
  const text = dropCodePoints(event.text, -gap);
  element.dataset.length = Math.max(have, event.offset) + codePoints(text);
  if (text) changing(() => { if (output) append(output, gap > 0 ? `\n… ${gap} characters not shown …\n${text}` : text); else open.append(text); });
}

function block(event, todo) {
  const element = piece(event.item);
  if (!element || event.seq <= seqOf(element)) return;
  const open = element.querySelector('[data-open]');
  if (event.index !== Number(element.dataset.blocks) || !open) return void todo.items.set(event.item, event);
  changing(() => {
    element.querySelector('[data-done]').insertAdjacentHTML('beforeend', event.html);
    open.textContent = dropCodePoints(open.textContent, event.end - Number(element.dataset.htmlEnd)).replace(/^\n+/, '');
    element.dataset.blocks = event.index + 1;
    element.dataset.htmlEnd = Number(element.dataset.length) - codePoints(open.textContent);
  });
}

// What the server draws

async function drawTurn(id) {
  const drawn = (await fragment(`${base}/messages/${id}/fragment/`))?.querySelector('.turn');
  if (!drawn) return;
  const old = turnOf(id);
  changing(() => { if (old) swap(old, drawn); else document.getElementById('transcript').append(drawn); });
}

async function drawItem(id, event) {
  const old = piece(id);
  if (old && event.seq <= seqOf(old)) return;
  const drawn = (await fragment(`${base}/items/${id}/fragment/`))?.querySelector('.piece');
  if (!drawn) return;
  changing(() => { if (old) swap(old, drawn); else put(drawn, event); });
}

function put(drawn, event) {
  const answer = turnOf(event.message)?.querySelector('.answer');
  answer?.append(drawn);
}

let looking;

/** Other chats move the place in the line, and their events do not come here. */
export function lookAtPlace() {
  clearTimeout(looking);
  if (document.querySelector('[data-place]')) looking = setTimeout(drawDock, PLACE_EVERY);
}

async function drawDock() {
  const drawn = await fragment(`${base}/dock/`);
  if (drawn) changing(() => document.getElementById('dock').replaceChildren(drawn));
  lookAtPlace();
  document.dispatchEvent(new CustomEvent('agentchat:dock'));
}

/** Put a newer version in place: what the person opened stays open, what they write and where they are is kept. */
export function swap(old, drawn) {
  for (const one of drawn.matches('.piece') ? [drawn] : drawn.querySelectorAll('.piece')) keep(piece(one.dataset.item), one);
  const focused = old.contains(document.activeElement);
  const path = focused && document.activeElement.id;
  old.replaceWith(drawn);
  if (focused) (path && document.getElementById(path) || drawn.querySelector('.card, summary'))?.focus({ preventScroll: true });
}

function keep(old, drawn) {
  if (!old) return;
  const opened = old.querySelector('details');
  const same = drawn.querySelector('details');
  if (opened && same) same.open = opened.open;
  const card = old.querySelector('.card[data-state="pending"]');
  const again = drawn.querySelector('.card[data-state="pending"]');
  if (card && again && card.dataset.digest === again.dataset.digest) again.replaceWith(card);
}

/** What was before the first turn on the page. */
async function older(button) {
  button.setAttribute('aria-disabled', 'true');
  const drawn = await fragment(`${base}/transcript/?before=${button.dataset.before}`);
  const first = document.querySelector('.turn');
  const top = first?.getBoundingClientRect().top ?? 0;
  button.closest('[data-older]').replaceWith(drawn);
  if (first) scrollBy(0, first.getBoundingClientRect().top - top);
}

document.addEventListener('click', (e) => {
  const button = e.target.closest('[data-before]');
  if (button) older(button);
  const show = e.target.closest('[data-show-card]');
  const card = show && piece(show.dataset.showCard)?.querySelector('.card');
  if (card) {
    e.preventDefault();
    card.scrollIntoView({ block: 'center' });
    hold(card);
    card.querySelector('h2')?.focus({ preventScroll: true });
  }
});
document.addEventListener('keydown', (e) => { if (e.key === 'End' && !e.target.closest('textarea, input')) toEnd(); });
