// Writing the next message. What is written is kept in this browser until the server has it.

import { newKey, post } from './api.js';
import { toEnd } from './scroll.js';

export function start(chat) {
  const form = document.querySelector('[data-composer]');
  if (!form) return;
  const field = form.querySelector('textarea');
  const draft = `draft:${chat}`;
  field.value = localStorage.getItem(draft) ?? '';
  const note = form.querySelector('[data-draft]');
  let key = newKey();
  note.textContent = field.value ? 'Draft kept' : '';
  field.addEventListener('input', () => {
    key = newKey();
    if (field.value) localStorage.setItem(draft, field.value); else localStorage.removeItem(draft);
    note.textContent = field.value ? 'Draft kept' : '';
  });
  field.addEventListener('keydown', (e) => {
    const touch = matchMedia('(pointer: coarse)').matches;
    if (e.key !== 'Enter' || e.shiftKey || e.isComposing || touch) return;
    e.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    if (!field.value.trim() || form.hasAttribute('aria-busy')) return;
    const text = field.value;
    form.toggleAttribute('aria-busy', true);
    const answer = await post(`/chats/${chat}/messages/`, { text }, { key });
    form.toggleAttribute('aria-busy', false);
    if (answer.status !== 201) return problem(answer);
    if (field.value === text) { // what was written meanwhile stays
      field.value = '';
      note.textContent = '';
      localStorage.removeItem(draft);
      key = newKey();
    }
    document.getElementById('draft-problem').hidden = true;
    toEnd();
  });
  document.addEventListener('click', (e) => { // what is being written is not overwritten
    const again = e.target.closest('[data-again]');
    if (!again) return;
    if (!field.value.trim()) { field.value = again.dataset.again; field.dispatchEvent(new Event('input')); }
    field.focus();
  });
  document.addEventListener('agentchat:dock', label);
  label();
}

function problem(answer) {
  const line = document.getElementById('draft-problem');
  line.textContent = answer.data.detail ?? 'The message did not reach the server. It is kept; send it again.';
  line.hidden = false;
}

function label() {
  const active = document.querySelector('[data-dock]')?.dataset.active;
  document.querySelector('[data-send]').textContent = active ? 'Queue' : 'Send';
}

document.addEventListener('click', async (e) => {
  const button = e.target.closest('[data-stop]');
  if (!button || button.getAttribute('aria-disabled') === 'true') return;
  button.setAttribute('aria-disabled', 'true');
  if (!('removes' in button.dataset)) button.lastChild.textContent = 'Stopping';
  const answer = await post(`/runs/${button.dataset.stop}/stop/`, {});
  if (answer.status !== 200) {
    button.setAttribute('aria-disabled', 'false');
    button.lastChild.textContent = 'Try again';
  }
});
