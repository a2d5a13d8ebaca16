"""The pages in a real Chromium: accessible, usable on a phone, safe for any stored data, with and without scripts.

All tests share one service and one browser, so they run in one process, one after another.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import pymysql
import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from ci import browser
from ci.purchasing_desk import DESK_PAGES, FORMATTED, LONG, fill_all_families
from ci.support_desk import THREAD, fill, fill_the_rest
from locus_mysql import CheckpointStore, Database, MySQLConfig, SyncCheckpointStore
from locus_mysql.server.application import create_app
from locus_mysql.server.tokens import NewToken, Tokens, new_token

from .running import running
from .test_pages import HOSTILE, PAGES, THREAD_PAGE

# Slow, as starting the browser and storing the shared data take about ten seconds.
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

#: The timeout for an expected change of a page, in milliseconds, sufficient on a busy machine.
WAIT_MS = 60_000
expect.set_options(timeout=WAIT_MS)

#: Pages that are not checked, as another page of the same kind is.
ALIKE = {"threads, filtered", "thread at a time", "statistics of graphs", "branch", "search for nothing"}

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@dataclass
class Site:
    """A service with stored data.

    Attributes:
        base: Base URL of the service in which every visitor has all permissions.
        guarded: Base URL of a service that requires signing in.
        desk: Base URL of a service of another tenant, with data of every family.
        token: The token for signing in.
        config: Configuration of the database.
    """

    base: str
    guarded: str
    desk: str
    token: NewToken
    config: MySQLConfig


@pytest.fixture(scope="module")
def site(server_dsn: str, server: pymysql.Connection[Any]) -> Iterator[Site]:
    """A service with the support desk's conversations, and with hostile texts."""
    name = f"locus_test_{secrets.token_hex(8)}"
    with server.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    config = MySQLConfig(dsn=server_dsn).model_copy(update={"database": name, "driver": "pymysql"})
    asyncio.run(_fill(config))
    token = new_token("ann", config.tenant, "write")
    with (
        running(create_app(Database(config), allow_writes=True)) as base,
        running(create_app(Database(config), tokens=Tokens(token.entry))) as guarded,
        running(create_app(Database(config.model_copy(update={"tenant": "desk"})), allow_writes=True)) as desk,
    ):
        yield Site(base, guarded, desk, token, config)
    with server.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name}")


async def _fill(config: MySQLConfig) -> None:
    async with Database(config) as database:
        async for _ in fill(database):
            pass
        await fill_the_rest(database)
        await fill_all_families(database, "desk")
        store = CheckpointStore(database)
        for text in HOSTILE:
            call = {"id": "1", "name": text, "arguments": {text: text}}
            conversation = [
                {"role": "user", "content": text},
                {"role": text, "content": text},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "content": text, "tool_call_id": "1"},
            ]
            await store.save(text, {"messages": conversation[:1], "field": "other"}, "first", {"tag": text})
            await store.save(text, {"messages": conversation, "field": text, text: [text]}, "second", {"tag": text})


@pytest.fixture(scope="module")
def chromium(site: Site) -> Iterator[Browser]:
    """A browser, started after the site, because Playwright keeps an event loop in this thread.

    Without a browser, these tests fail instead of being skipped.
    """
    try:
        program = browser.chromium(print)
    except browser.BrowserMissing as error:
        pytest.fail(f"There is no Chromium to look at the pages with: {error}", pytrace=False)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(program), args=list(browser.ARGUMENTS), timeout=2 * WAIT_MS
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def axe() -> str:
    """Return the script with the accessibility rules."""
    try:
        return browser.axe(print).read_text(encoding="utf-8")
    except browser.BrowserMissing as error:
        pytest.fail(f"There are no rules of accessibility to check: {error}", pytrace=False)


@dataclass
class Window:
    """A window of the browser, and the errors that occurred in it.

    Attributes:
        page: The page in the window.
        wrong: Errors of its console and its requests.
    """

    page: Page
    wrong: list[str] = field(default_factory=list)


@pytest.fixture
def window(chromium: Browser, site: Site, request: pytest.FixtureRequest) -> Iterator[Window]:
    """A window whose requests never leave this machine, and in which no errors may occur.

    ``@pytest.mark.parametrize("window", [{…}], indirect=True)`` passes options to Playwright's context.
    """
    options = {"viewport": WIDE, **getattr(request, "param", {})}
    context = chromium.new_context(**options)
    context.set_default_timeout(WAIT_MS)
    opened = Window(context.new_page())

    def only_ours(route: Route) -> None:
        if route.request.url.startswith((site.base, site.guarded, site.desk)):
            route.continue_()
        else:
            opened.wrong.append(f"asked for {route.request.url}")
            route.abort()

    context.route("**/*", only_ours)
    page = opened.page
    page.on(
        "console", lambda message: opened.wrong.append(message.text) if message.type in {"error", "warning"} else None
    )
    page.on("pageerror", lambda error: opened.wrong.append(str(error)))
    page.on("dialog", lambda dialog: opened.wrong.append(f"dialog: {dialog.message}"))
    yield opened
    context.close()
    assert opened.wrong == []


def violations(page: Page, rules: dict[str, Any]) -> list[str]:
    """Return the violations of accessibility rules on a page, without selectors of the elements."""
    options = {**rules, "resultTypes": ["violations"], "selectors": False}
    found = page.evaluate("options => axe.run(options)", options)["violations"]
    return [f"{one['id']}: {node['html'][:200]} {node['failureSummary']}" for one in found for node in one["nodes"]]


def overflows(page: Page) -> bool:
    """Return whether a page is wider than its window."""
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


def test_every_page_keeps_the_rules_of_accessibility_wide_and_narrow_light_and_dark(
    window: Window, site: Site, axe: str
) -> None:
    page = window.page
    addresses = [(site.base, name, address) for name, address in PAGES.items() if name not in ALIKE]
    desk = [(site.desk, name, address) for name, address in DESK_PAGES.items()]
    for base, name, address in [*addresses, *desk, (site.guarded, "sign in", "/login")]:
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]
        page.emulate_media(color_scheme="light")
        response = page.goto(base + address)
        assert response is not None
        assert response.status == (404 if name == "missing" else 200), name
        page.evaluate("[...document.querySelectorAll('details')].forEach(one => one.open = true)")
        page.evaluate(axe)
        assert violations(page, {"runOnly": RULES}) == [], name
        assert not overflows(page), name
        page.emulate_media(color_scheme="dark")
        assert violations(page, {"runOnly": ["color-contrast"]}) == [], f"{name}, dark"
        page.set_viewport_size(NARROW)  # type: ignore[arg-type]
        assert violations(page, {"runOnly": ["target-size"]}) == [], f"{name}, narrow"
        assert not overflows(page), f"{name}, narrow"
        if name == "missing":
            window.wrong.clear()  # the console reports the status


def test_stored_text_never_acts_as_html_or_script(window: Window, site: Site) -> None:
    page = window.page
    page.goto(f"{site.base}/?family=dicts")
    for link in page.locator("a[data-entry]").all():
        assert (link.get_attribute("href") or "").startswith("/inspect/thread?")
    for text in HOSTILE:
        page.goto(f"{site.base}/?{urlencode({'family': 'dicts', 'q': text})}")
        assert page.title() != "taken"
        # If words are searched for, the page shows the whole state and marks these words.
        page.goto(f"{site.base}/inspect/thread?{urlencode({'family': 'dicts', 'thread': text, 'find': 'title'})}")
        assert page.locator("h1").count() == 1
        assert "taken" not in page.title() or "taken" in text
        assert page.title() != "taken"
        page.evaluate("[...document.querySelectorAll('details')].forEach(one => one.open = true)")
        page.locator(".message").first.hover()
        assert page.evaluate("document.querySelectorAll('main img, main script, main [onload]').length") == 0
        compared = {"family": "dicts", "thread": text, "before": "first", "after": "second"}
        page.goto(f"{site.base}/inspect/difference?{urlencode(compared)}")
        assert page.title() != "taken"
    page.goto(f"{site.base}/?family=dicts")
    for text in HOSTILE[:2]:  # the script searches, and shows the result in the same page
        page.fill("#q", text)
        expect(page.locator("a[data-entry]")).to_have_text([text])
        assert page.title() != "taken"


def test_a_search_is_answered_as_one_types(window: Window, site: Site) -> None:
    page = window.page
    page.goto(site.base)
    expect(page.locator("a[data-entry]")).to_have_count(8)

    page.keyboard.press("/")
    page.keyboard.type("mei")

    expect(page.locator("a[data-entry]")).to_have_count(1)
    expect(page.locator("#announcements")).to_have_text("1 found")
    expect(page.locator("#q")).to_be_focused()
    assert "q=mei" in page.url


def test_a_list_is_walked_with_keys(window: Window, site: Site) -> None:
    page = window.page
    page.goto(site.base)
    entries = page.locator("a[data-entry]")

    page.keyboard.press("j")
    expect(entries.nth(0)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(entries.nth(1)).to_be_focused()
    wanted = entries.nth(1).inner_text()
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text(wanted)


def test_keys_of_one_letter_can_be_switched_off(window: Window, site: Site) -> None:
    page = window.page
    page.goto(site.base)
    page.keyboard.press("?")
    page.get_by_label("Use single-letter keys").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("j")
    assert page.locator("a[data-entry]:focus").count() == 0
    page.reload()
    page.keyboard.press("?")
    assert page.locator("#help[open]").count() == 0


def test_the_first_stop_of_the_tab_key_leads_past_the_navigation(window: Window, site: Site) -> None:
    page = window.page
    page.goto(site.base)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_two_states_are_chosen_and_compared(window: Window, site: Site) -> None:
    page = window.page
    page.goto(site.base + THREAD_PAGE)
    page.get_by_label("Compare from 01HZX9A09K3").check()
    page.get_by_label("Compare to 01HZX9B12K3").check()
    page.get_by_role("button", name="Compare").click()

    expect(page.locator("h1")).to_have_text("Changes")
    expect(page.get_by_text("Actually I found another tent nearby.")).to_be_visible()


def test_a_state_is_searched_as_one_types(window: Window, site: Site) -> None:
    page = window.page
    page.goto(site.base + THREAD_PAGE)
    tier = page.locator(".tree .value", has_text="gold")
    expect(tier).to_be_hidden()

    page.locator("#find").press_sequentially("GOLD")

    expect(tier).to_be_visible()
    expect(page.locator("[data-tree-hits]")).to_have_text("1 place")


@pytest.mark.parametrize("window", [{"permissions": ["clipboard-read", "clipboard-write"]}], indirect=True)
def test_a_state_is_copied_as_json(window: Window, site: Site) -> None:
    page = window.page
    page.goto(f"{site.base}{THREAD_PAGE}&checkpoint=01HZX9A03K3")
    page.get_by_role("button", name="Copy JSON").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    found = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert found["checkpoint"]["checkpoint_id"] == "01HZX9A03K3"


def test_a_thread_that_is_written_shows_it_by_itself(window: Window, site: Site) -> None:
    page = window.page
    with SyncCheckpointStore(site.config) as store:
        conversation: list[dict[str, Any]] = [{"role": "user", "content": "first words\n" * 10}]
        call = {"id": "1", "name": "look_up", "arguments": {"id": 1}}
        conversation.append({"role": "assistant", "content": "", "tool_calls": [call]})
        for state in ({}, {"messages": conversation[:1]}, {"messages": conversation}):
            store.save("written", state)
        page.goto(f"{site.base}/inspect/thread?family=dicts&thread=written")
        expect(page.locator("[data-live]")).to_have_text("Live")
        page.locator(".call summary").click()
        page.locator("input[name=before]").nth(2).check()

        newest = store.save(
            "written", {"messages": [*conversation, {"role": "user", "content": "words that came later"}]}
        )

        expect(page.locator(".messages")).to_contain_text("words that came later")
        expect(page.locator(".timeline li")).to_have_count(4)
        expect(page.locator("input[name=before]").nth(3)).to_be_checked()  # the selection is unchanged
        expect(page.locator(".call[open]")).to_have_count(1)  # expanded parts are still expanded
        expect(page.locator("#announcements")).to_have_text("The thread was updated.")
        for name in ("Download JSON", "Link to this state", "Branch from here"):
            expect(page.get_by_role("link", name=name)).to_have_attribute("href", re.compile(newest))
        expect(page.get_by_role("button", name="Copy JSON")).to_have_attribute("data-copy", re.compile(newest))

        store.delete("written")

        expect(page.locator("[data-live]")).to_have_text("The thread was deleted")
        window.wrong.clear()  # the console reports the status


@pytest.mark.parametrize("window", [{"viewport": NARROW}], indirect=True)
def test_the_header_of_a_phone_is_one_line_and_shows_the_current_page(window: Window, site: Site) -> None:
    page = window.page
    for path in ("/", "/inspect/statistics"):
        page.goto(site.desk + path)
        height = page.evaluate("document.querySelector('.top').offsetHeight")
        assert height <= 56
        current = page.locator(".top nav [aria-current]").bounding_box()
        assert current is not None
        assert 0 <= current["x"] < current["x"] + current["width"] <= NARROW["width"]
    expect(page.get_by_text("Tenant").last).to_be_visible()


def test_the_newest_message_of_a_long_thread_is_one_click_away(window: Window, site: Site) -> None:
    page = window.page
    page.goto(f"{site.desk}/inspect/thread?family=agents&thread={LONG}")
    last = page.locator(".messages > li").last
    expect(last).not_to_be_in_viewport()
    page.get_by_role("link", name="Newest message").click()
    expect(last).to_be_in_viewport()


def test_the_time_zone_of_the_browser_is_proposed(window: Window, site: Site) -> None:
    page = window.page
    page.goto(f"{site.desk}/inspect/thread?family=agents&thread={FORMATTED}")
    page.get_by_role("link", name="Change").click()
    here = page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    chosen = page.get_by_label("Time zone")
    expect(chosen).to_have_value(
        here if page.locator(f"option[value='{here}'], option:text-is('{here}')").count() else "UTC"
    )
    chosen.select_option("Pacific/Auckland")
    page.get_by_role("button", name="Use it").click()
    expect(page.locator("h1")).to_have_text(FORMATTED)
    expect(page.locator(".bottom")).to_contain_text("Times: Pacific/Auckland.")
    expect(page.get_by_label("State at a time, in Pacific/Auckland")).to_be_visible()


def test_a_sign_in_in_a_browser_lasts_until_signing_out(window: Window, site: Site) -> None:
    page = window.page
    page.goto(site.guarded + THREAD_PAGE)
    page.get_by_label("Token").fill("lmt_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    window.wrong.clear()  # the console reports the status

    page.get_by_label("Token").fill(site.token.secret)
    page.get_by_role("button", name="Sign in").click()

    expect(page.locator("h1")).to_have_text(THREAD)
    assert page.evaluate("document.cookie") == ""
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
    assert site.token.secret not in str(cookie)
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("h1")).to_have_text("Sign in")
    page.goto(site.guarded)
    expect(page.locator("h1")).to_have_text("Sign in")


def test_a_page_of_another_site_can_do_nothing(window: Window, site: Site) -> None:
    page = window.page
    page.route("http://evil.localhost/", lambda route: route.fulfill(content_type="text/html", body=EVIL))
    for path, fields in (
        ("/inspect/delete", {"family": "agents", "thread": THREAD}),
        ("/inspect/copy", {"family": "agents", "thread": THREAD, "target": "stolen"}),
    ):
        page.goto("http://evil.localhost/")
        page.evaluate("([action, fields]) => send(action, fields)", [site.base + path, fields])
        expect(page.locator("body")).to_contain_text("A page of another site sent this request.")
    page.goto("http://evil.localhost/")
    page.evaluate("async address => { await frame(address); }", site.base)
    assert "Threads" not in page.frames[-1].content()
    window.wrong.clear()  # the console reports the refused request
    page.goto(f"{site.base}/?family=agents")
    expect(page.get_by_role("link", name=THREAD)).to_be_visible()
    expect(page.get_by_role("link", name="stolen")).to_have_count(0)


EVIL = """<!doctype html><title>Evil</title><body><script>
function send(action, fields) {
  const form = document.createElement("form");
  form.method = "post";
  form.action = action;
  for (const [name, value] of Object.entries(fields)) {
    const input = document.createElement("input");
    input.name = name;
    input.value = value;
    form.append(input);
  }
  document.body.append(form);
  form.submit();
}
function frame(address) {
  const made = document.createElement("iframe");
  made.src = address;
  document.body.append(made);
  return new Promise((resolve) => { made.onload = resolve; });
}
</script>"""


@pytest.mark.parametrize("window", [{"java_script_enabled": False, "viewport": NARROW}], indirect=True)
def test_without_a_script_everything_works_as_well(window: Window, site: Site) -> None:
    page = window.page
    page.goto(site.base)
    page.fill("#q", "mei")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("a[data-entry]")).to_have_count(1)

    page.goto(site.base + THREAD_PAGE)
    page.fill("#find", "gold")
    page.get_by_role("button", name="Find").click()
    expect(page.locator(".tree .value.hit", has_text="gold")).to_be_visible()
    page.locator(".call summary").first.click()
    expect(page.locator(".call[open]").first).to_contain_text("48213")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("h1")).to_have_text("Changes")

    page.goto(f"{site.base}{THREAD_PAGE}&checkpoint=01HZX9A05K3")
    page.get_by_role("link", name="Branch from here").click()
    page.get_by_label("Id of the new thread").fill("made without a script")
    page.get_by_role("button", name="Branch").click()
    expect(page.locator("h1")).to_have_text("made without a script")
    page.get_by_role("link", name="Delete thread").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("h1")).to_have_text("Threads")
    expect(page.get_by_role("link", name="made without a script")).to_have_count(0)
