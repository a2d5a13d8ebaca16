// Optional improvements of the pages. Every page works without this script, with links and forms.
"use strict";

const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const announce = (text) => { one("#announcements").textContent = text; };

// Loads a page again; returns the document, or null if it cannot be loaded.
async function load(address, signal) {
  const answer = await fetch(address, { signal, headers: { Accept: "text/html" }, credentials: "same-origin" });
  if (!answer.ok || answer.redirected) { return null; }
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// Search as you type: the form is sent by itself, and only the results are replaced.
for (const form of all("form[data-live-search]")) {
  let waiting = 0;
  let asked = null;
  const search = async () => {
    const address = new URL(form.action);
    for (const [name, value] of new FormData(form)) {
      if (value) { address.searchParams.set(name, value); }
    }
    asked?.abort();
    asked = new AbortController();
    const results = one("[data-results]");
    results.setAttribute("aria-busy", "true");
    try {
      const page = await load(address, asked.signal);
      const found = page && one("[data-results]", page);
      if (!found) { form.submit(); return; }
      results.replaceChildren(...found.childNodes);
      history.replaceState(null, "", address);
      const count = all("[data-entry]", results).length;
      announce(count === 1 ? "1 found" : `${count} found`);
    } catch (error) {
      if (error.name === "AbortError") { return; }
      announce("The search failed. Press Enter to try again.");
    }
    results.removeAttribute("aria-busy");
  };
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 250);
  });
}

// The time zone of the browser is proposed. On a phone, the current page of the navigation is scrolled into view.
const zones = one("[data-zones]");
if (zones && zones.value === "UTC") {
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if ([...zones.options].some((option) => option.value === here)) { zones.value = here; }
}
one(".top nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// Keyboard shortcuts. Users can switch them off, because they may conflict with other software.
const keysOn = one("#keys-on");
const help = one("#help");
try { keysOn.checked = localStorage.getItem("locus-mysql-keys") !== "off"; } catch { /* storage is unavailable */ }
keysOn.addEventListener("change", () => {
  try { localStorage.setItem("locus-mysql-keys", keysOn.checked ? "on" : "off"); } catch { /* not kept then */ }
});
const openHelp = one("#open-help");
openHelp.hidden = false;
openHelp.addEventListener("click", () => help.showModal());

function step(by) {
  const entries = all("[data-entry]");
  if (!entries.length) { return; }
  const row = document.activeElement?.closest("tr, li");
  const now = entries.findIndex((entry) => entry === document.activeElement || (row && row.contains(entry)));
  entries[Math.max(0, Math.min(entries.length - 1, now < 0 ? (by > 0 ? 0 : entries.length - 1) : now + by))].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open || !keysOn.checked) { return; }
  if (event.target.closest("input, select, textarea, [contenteditable]")) {
    if (event.key === "Escape") { event.target.blur(); }
    return;
  }
  const field = one("[data-slash]") || one("#find");
  if (event.key === "j") { step(1); }
  else if (event.key === "k") { step(-1); }
  else if (event.key === "/" && field) { field.focus(); field.select(); }
  else if (event.key === "?") { help.showModal(); }
  else { return; }
  event.preventDefault();
});

// Copies a state's JSON. Browsers offer a clipboard only to pages over HTTPS or from this machine.
document.documentElement.classList.toggle("can-copy", Boolean(navigator.clipboard));
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) { return; }
  try {
    const answer = await fetch(button.dataset.copy, { credentials: "same-origin" });
    if (!answer.ok) { throw new Error(String(answer.status)); }
    await navigator.clipboard.writeText(await answer.text());
    button.textContent = "Copied";
    announce("The state is copied as JSON.");
  } catch {
    button.textContent = "Not copied";
    announce("It could not be copied. The link beside it saves it as a file.");
  }
  setTimeout(() => { button.textContent = "Copy JSON"; }, 2000);
});

// Searches a tree as the user types. Values that are too large to be shown are not searched.
function findInTree(form) {
  const field = one("input[type=search]", form);
  const tree = form.parentElement.querySelector(".tree");
  const hits = one("[data-tree-hits]", form);
  const find = field.value.trim().toLowerCase();
  let count = 0;
  for (const part of all(".key, .value", tree)) {
    const found = Boolean(find) && part.textContent.toLowerCase().includes(find);
    part.classList.toggle("found", found);
    part.classList.remove("hit");
    if (found) {
      count += 1;
      for (let fold = part.closest("details"); fold; fold = fold.parentElement.closest("details")) {
        if (!fold.contains(part) || !part.closest("summary") || fold !== part.closest("details")) { fold.open = true; }
      }
    }
  }
  hits.textContent = find ? (count === 1 ? "1 place" : `${count} places`) : "";
}
document.addEventListener("input", (event) => {
  const form = event.target.closest("[data-tree-search]");
  if (form) { findInTree(form); }
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("[data-tree-search]")) {
    event.preventDefault();
    findInTree(form);
    one(".found", form.parentElement)?.scrollIntoView({ block: "center" });
  } else if (form.method === "post") {
    // The form is sent once, however often the button is pressed. It works again after a return to the page.
    setTimeout(() => all("button", form).forEach((button) => { button.disabled = true; }), 0);
  }
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) { all("button:disabled").forEach((button) => { button.disabled = false; }); }
});

// Live updates of a thread: the page is loaded again after each write, and its changed parts are replaced.
const live = one("[data-live]");
if (live) {
  const status = one("[data-live-status]", live);
  const parts = () => new Map(all("[data-part]").map((part) => [part.dataset.part, part]));
  const show = (text, away) => {
    live.hidden = false;
    live.classList.toggle("away", away);
    if (status.textContent !== text) { status.textContent = text; }
  };

  // Unchanged messages are kept, so that unfolded parts and the scroll position stay.
  function merge(old, fresh) {
    const list = one(".messages", old);
    const news = one(".messages", fresh);
    if (!list || !news) { old.replaceChildren(...fresh.childNodes); return; }
    const known = new Map(all(":scope > li", list).map((item) => [item.id, item]));
    const same = (item) => known.has(item.id) && known.get(item.id).textContent === item.textContent;
    list.replaceChildren(...[...news.children].map((item) => (same(item) ? known.get(item.id) : document.adoptNode(item))));
    for (const part of all(":scope > .more, :scope > .notice, :scope > .quiet", old)) { part.remove(); }
    for (const part of all(":scope > .more, :scope > .notice, :scope > .quiet", fresh)) {
      if (part.compareDocumentPosition(news) & Node.DOCUMENT_POSITION_FOLLOWING) { list.before(document.adoptNode(part)); }
      else { list.after(document.adoptNode(part)); }
    }
  }

  let loading = false;
  let again = false;
  async function refresh() {
    if (loading) { again = true; return; }
    loading = true;
    const low = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 80;
    try {
      const page = await load(location.href);
      if (page) {
        for (const [name, part] of parts()) {
          const fresh = one(`[data-part="${name}"]`, page);
          if (!fresh || fresh.innerHTML === part.innerHTML) { continue; }
          const kept = document.activeElement;
          const href = part.contains(kept) && kept.getAttribute("href");
          const picked = all("input:checked", part).filter((field) => !field.defaultChecked);
          if (name === "conversation") { merge(part, fresh); }
          else if (name === "state" && (part.contains(kept) || one("details[open] details[open]", part))) { continue; }
          else { part.replaceChildren(...fresh.childNodes); }
          for (const { name: field, value } of picked) {
            const again = one(`input[name="${field}"][value="${CSS.escape(value)}"]`, part);
            if (again) { again.checked = true; }
          }
          if (href && !document.contains(kept)) { one(`a[href="${CSS.escape(href)}"]`, part)?.focus(); }
        }
        live.classList.remove("fresh");
        void live.offsetWidth;
        live.classList.add("fresh");
        announce("The thread was updated.");
        if (low) { window.scrollTo(0, document.documentElement.scrollHeight); }
      } else {
        show("The thread was deleted", true);
      }
    } catch { /* the event stream reports the failure and sends another event */ }
    loading = false;
    if (again) { again = false; refresh(); }
  }

  let source = null;
  function listen() {
    source = new EventSource(live.dataset.live);
    source.addEventListener("open", () => show("Live", false));
    source.addEventListener("changed", () => { show("Live", false); refresh(); });
    source.addEventListener("away", () => show("The database cannot be reached; waiting", true));
    source.addEventListener("back", () => show("Live", false));
    source.addEventListener("ended", () => { source.close(); show("Signed out", true); });
    source.addEventListener("error", () => {
      show("Waiting for the service", true);
      if (source.readyState === EventSource.CLOSED) { setTimeout(listen, 5000); }
    });
  }
  // A hidden page closes its event stream.
  const heed = () => {
    if (document.hidden) { source?.close(); source = null; }
    else if (!source) { listen(); }
  };
  document.addEventListener("visibilitychange", heed);
  window.addEventListener("pagehide", () => { source?.close(); source = null; });
  window.addEventListener("pageshow", heed);
  heed();
}
