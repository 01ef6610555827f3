// Everything that goes to the server: decisions and messages as JSON, pieces of the page as HTML.

const cookie = (name) => document.cookie.split('; ').find((c) => c.startsWith(`${name}=`))?.slice(name.length + 1) ?? '';

/** Also where `randomUUID` is missing: browsers have it only on https and on the machine itself. */
export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** POST; gives {status, data}. status 0 means that no answer came within `seconds`. */
export async function post(path, body, { key = newKey(), seconds = 10 } = {}) {
  const headers = {
    'Content-Type': 'application/json',
    'X-CSRFToken': cookie('agentchat_csrf'),
    'X-Requested-With': 'agentchat-page',
    'Idempotency-Key': key,
  };
  try {
    const signal = AbortSignal.timeout(seconds * 1000);
    const answer = await fetch(`/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body), signal });
    return { status: answer.status, data: await answer.json().catch(() => ({})) };
  } catch {
    return { status: 0, data: {} };
  }
}

/** A piece of a page as elements; null if it is gone. Throws if the server cannot be reached. */
export async function fragment(path) {
  const answer = await fetch(path, { headers: { Accept: 'text/html' }, signal: AbortSignal.timeout(15000) });
  if (answer.status === 401) location.reload();
  if (answer.status === 404) return null;
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  const box = document.createElement('template');
  box.innerHTML = await answer.text();
  return box.content;
}
