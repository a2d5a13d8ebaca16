"""The pages over HTTP: their contents for any stored data, their errors and their headers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from threading import Event, Semaphore
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from ci.support_desk import THREAD, fill, fill_the_rest
from locus_mysql import CheckpointStore, Database, MemoryStore, MySQLBackend, MySQLConfig, SyncCheckpointStore
from locus_mysql.inspection import Inspector, inspector
from locus_mysql.inspection.differences import difference
from locus_mysql.memory import HashingEmbedder
from locus_mysql.server.application import create_app
from locus_mysql.server.limits import Limits
from locus_mysql.server.services import BlockingInspector
from locus_mysql.server.tokens import Tokens, new_token

from ..conftest import MakeConfig
from .conftest import OpenClient

#: Texts that must be shown as text and never become markup.
HOSTILE = (
    "<script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "]]>--><svg/onload=document.title='taken'>",
    "{{ 7919*6841 }}{% for x in y %}{{ ''.__class__.__mro__ }}",
    "javascript:document.title='taken'",
    "\u202egnp.exe\u2066\u200b\ufeff",
    "\"' onmouseover='document.title=1' autofocus x=\"",
    "../../etc/passwd%00?a=b&c=d#e;\\",
)

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
POLICY += "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

#: A URL of each kind of page.
THREAD_PAGE = f"/inspect/thread?family=agents&thread={THREAD}"
PAGES = {
    "threads": "/",
    "threads, filtered": "/?family=agents&q=support&key=channel&value=chat&size=10k&age=1h",
    "thread": THREAD_PAGE,
    "thread at a checkpoint": f"{THREAD_PAGE}&checkpoint=01HZX9A03K3&find=order",
    "thread at a time": f"{THREAD_PAGE}&at=2001-01-01T00:00",
    "graph": "/inspect/thread?family=graphs&thread=graph-triage-7",
    "difference": f"/inspect/difference?family=agents&thread={THREAD}&before=01HZX9A01K3&after=01HZX9B12K3",
    "search": "/inspect/search?q=tent",
    "search for nothing": "/inspect/search?q=xyzzy",
    "metadata": "/inspect/metadata?key=channel&value=chat",
    "statistics": "/inspect/statistics",
    "statistics of graphs": "/inspect/statistics?family=graphs",
    "memories": "/inspect/memories",
    "namespace": "/inspect/memories?namespace=" + quote('["customers","anna.lindqvist"]'),
    "memories found": "/inspect/memories?q=tent",
    "memory": "/inspect/memory?key=tent&namespace=" + quote('["customers","anna.lindqvist"]'),
    "sessions": "/inspect/sessions",
    "session": "/inspect/session?session=triage-7",
    "copy": f"/inspect/copy?family=agents&thread={THREAD}",
    "branch": f"/inspect/copy?family=agents&thread={THREAD}&checkpoint=01HZX9A03K3",
    "delete": f"/inspect/delete?family=agents&thread={THREAD}",
    "missing": "/inspect/thread?family=agents&thread=nothing",
}


class Page(HTMLParser):
    """The contents of a page.

    Args:
        text: Its HTML.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def links(self) -> list[str]:
        """Return the URLs of its links, in order."""
        return [attributes["href"] or "" for tag, attributes in self.elements if tag == "a" and "href" in attributes]

    def inputs(self) -> dict[str, str]:
        """Return names and values of the fields in its forms."""
        return {
            str(attributes["name"]): attributes.get("value") or ""
            for tag, attributes in self.elements
            if tag in {"input", "button"} and "name" in attributes
        }


async def fill_all(config: MySQLConfig) -> None:
    """Save the support desk's conversations, memories and sessions."""
    async with Database(config) as database:
        async for _ in fill(database):
            pass
        await fill_the_rest(database)


@pytest.fixture(scope="module")
def filled_pages(shared_config: MySQLConfig) -> str:
    """Return the schema of the support desk. The tests that only read it share it: to fill one takes 0.4 s."""
    asyncio.run(fill_all(shared_config.model_copy(update={"driver": "pymysql"})))
    return str(shared_config.database)


@pytest.fixture
def database(request: pytest.FixtureRequest, database: str) -> str:
    """Return the test's schema: that of the support desk if the test uses ``filled_pages``, or else a new one."""
    return str(request.getfixturevalue("filled_pages")) if "filled_pages" in request.fixturenames else database


@pytest.fixture
async def filled_anew(make_config: MakeConfig) -> None:
    """Fill a new schema, for a test that writes."""
    await fill_all(make_config(driver="pymysql"))


def checked_page(response: httpx.Response, status: int = 200) -> Page:
    """Check the rules for every page, and return the page."""
    assert response.status_code == status, response.text
    assert response.headers["content-security-policy"] == POLICY
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"
    page = Page(response.text)
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
        assert tag not in {"style", "iframe", "object", "embed", "base"}
        for name in ("src", "href", "action"):
            address = attributes.get(name)
            ours = address is None or re.match(r"/(?!/)|#", address)
            outside = tag == "a" and attributes.get("rel") == "noopener noreferrer nofollow"
            assert ours or (outside and re.match(r"https?://|mailto:", str(address))), (tag, attributes)
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert [sorted(one) for one in scripts] == [["defer", "src"]]
    return page


@pytest.mark.slow
@pytest.mark.usefixtures("filled_pages")
async def test_every_page_has_its_place_and_only_what_is_ours(open_client: OpenClient) -> None:
    client = open_client(allow_writes=True)
    for name, address in PAGES.items():
        page = checked_page(await client.get(address), 404 if name == "missing" else 200)
        assert [tag for tag, _ in page.elements].count("h1") == 1, name


@pytest.mark.slow
@pytest.mark.usefixtures("filled_pages")
async def test_every_link_of_the_pages_leads_to_a_page(open_client: OpenClient) -> None:
    client = open_client(allow_writes=True)
    seen: set[str] = set()
    waiting = list(PAGES.values())[:-1]
    while waiting:
        address = waiting.pop().partition("#")[0]
        kind = re.sub(r"=[^&]*", "", address)
        if not address or kind in seen:  # one of each kind
            continue
        seen.add(kind)
        response = await client.get(address)
        assert response.status_code == 200, address
        if response.headers["content-type"].startswith("text/html"):
            waiting += Page(response.text).links()
    assert len(seen) > 25


@pytest.mark.usefixtures("filled_pages")
async def test_a_conversation_is_shown_with_its_calls_and_what_came_of_them(client: httpx.AsyncClient) -> None:
    page = checked_page(await client.get(THREAD_PAGE))

    assert "Please refund me instead." in page.text
    assert "Refused: refunds over 200.00 EUR need approval." in page.text
    assert "01HZX9B12K3" in page.text
    assert "2 branches" in page.text
    assert any(tag == "svg" for tag, _ in page.elements)


@pytest.mark.usefixtures("filled_pages")
async def test_a_state_is_shown_as_it_was(client: httpx.AsyncClient) -> None:
    page = checked_page(await client.get(f"{THREAD_PAGE}&checkpoint=01HZX9A03K3"))

    assert "As it was at" in page.text
    assert "Please refund me instead." not in page.text
    assert '{"item": "Tent Fjell 3", "part": "pole set"}' in page.text


@pytest.mark.usefixtures("filled_pages")
async def test_messages_are_shown_with_the_time_at_which_they_were_first_saved(client: httpx.AsyncClient) -> None:
    page = checked_page(await client.get(THREAD_PAGE))
    messages = sum("message" in (attributes.get("class") or "").split() for _, attributes in page.elements)
    assert messages > 5
    assert len(re.findall(r"saved \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", page.text)) == messages


@pytest.mark.usefixtures("filled_anew")
async def test_a_search_finds_in_every_kind_and_leads_to_the_message(
    client: httpx.AsyncClient, make_config: MakeConfig
) -> None:
    async with CheckpointStore(make_config()) as store:
        conversation = [{"role": "user", "content": f"Turn {number}"} for number in range(300)]
        conversation[20]["content"] = "Two TENT poles are cracked."
        await store.save("plain", {"messages": conversation})

    async def threads(**query: str) -> dict[str, str]:
        page = checked_page(await client.get("/inspect/search", params={"q": "tent", **query}))
        links = [
            unescape(attributes["href"] or "")
            for tag, attributes in page.elements
            if tag == "a" and "data-entry" in attributes
        ]
        return {re.search(r"family=(\w+)", link)[1]: link for link in links}  # type: ignore[index]

    found = await threads()
    assert set(found) == {"agents", "dicts"}
    assert set(await threads(family="dicts")) == {"dicts"}
    assert await threads(family="graphs") == {}
    assert found["dicts"].endswith("#hit")
    page = await client.get(found["dicts"])
    checked_page(page)
    assert re.search(r'id="m21">\s*<span id="hit">', page.text)
    assert "Two <mark>TENT</mark> poles" in page.text
    page = await client.get((await threads(q="warehouse"))["agents"])
    assert re.search(r"<details class=\"call\" open>.*?<mark>warehouse</mark>", page.text, re.DOTALL)


@pytest.mark.usefixtures("filled_pages")
async def test_the_page_of_differences_shows_changed_messages_and_fields(client: httpx.AsyncClient) -> None:
    page = checked_page(
        await client.get(f"/inspect/difference?thread={THREAD}&family=agents&before=01HZX9A09K3&after=01HZX9B12K3")
    )

    assert re.search(r"\d removed", page.text)
    assert "Actually I found another tent nearby." in page.text
    assert "confidence" in page.text


@pytest.mark.usefixtures("filled_pages")
async def test_a_whole_state_can_be_downloaded_as_json(client: httpx.AsyncClient) -> None:
    response = await client.get(f"/inspect/state.json?family=agents&thread={THREAD}&checkpoint=01HZX9A01K3")

    assert response.headers["content-disposition"].startswith("attachment")
    found = json.loads(response.text)
    assert found["checkpoint"]["checkpoint_id"] == "01HZX9A01K3"
    assert found["state"]["messages"][1]["role"] == "user"


@pytest.mark.usefixtures("filled_pages")
async def test_threads_are_found_by_id_metadata_size_and_age(client: httpx.AsyncClient) -> None:
    async def ids(**query: str) -> list[str]:
        page = checked_page(await client.get("/", params={"family": "agents", **query}))
        return [
            unescape(attributes["href"] or "").rpartition("thread=")[2]
            for tag, attributes in page.elements
            if tag == "a" and "data-entry" in attributes
        ]

    assert (await ids())[0] == THREAD
    assert await ids(q="mei") == ["support-48231-mei.tanaka"]
    assert await ids(q="weekly-*") == ["weekly-report-47"]
    assert set(await ids(key="channel", value="internal")) == {"returns-2026-11-22", "weekly-report-47"}
    assert await ids(key="order", value="48213") == [THREAD]
    assert await ids(size="10m") == []
    assert await ids(age="old") == []
    assert len(await ids(age="1h")) == 8


async def test_pages_of_threads_follow_each_other(open_client: OpenClient, make_config: MakeConfig) -> None:
    async with CheckpointStore(make_config(driver="pymysql")) as store:
        for at in range(53):
            await store.save(f"thread-{at:02}", {"at": at})
    client = open_client()

    first = checked_page(await client.get("/"))
    (onward,) = [link for link in first.links() if "cursor=" in link]
    second = checked_page(await client.get(onward))

    shown = [re.findall(r"thread-\d\d", page.text) for page in (first, second)]
    assert sorted(shown[0] + shown[1]) == [f"thread-{at:02}" for at in range(53)]
    assert not [link for link in second.links() if "cursor=" in link]


@pytest.mark.slow
async def test_all_stored_data_are_shown_as_text(open_client: OpenClient, make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    async with CheckpointStore(config) as store, MySQLBackend(config) as backend:
        for text in HOSTILE:
            call = {"id": text, "name": text, "arguments": {text: [text]}}
            messages = [
                {"role": "user", "content": text, "metadata": {text: text}},
                {"role": text, "content": text},
                {"role": "assistant", "content": text, "tool_calls": [call]},
                {"role": "tool", "content": text, "tool_call_id": text},
            ]
            state = {"messages": messages, text: {text: text}}
            await store.save(text, state, text, {text: text, "tag": text})
            await store.save(text, {**state, "more": text}, f"{text} again"[:128], {"tag": text})
            await backend.save(text, state, metadata={"tag": text})
    client = open_client(allow_writes=True)
    checked_page(await client.get("/"))
    for text in HOSTILE:
        of_thread = {"family": "dicts", "thread": text}
        for path, query in (
            ("/", {"q": text, "key": "tag", "value": text}),
            ("/inspect/thread", of_thread),
            ("/inspect/thread", {**of_thread, "checkpoint": text, "find": text}),
            ("/inspect/thread", {"family": "current", "thread": text}),
            ("/inspect/difference", {**of_thread, "before": text, "after": f"{text} again"}),
            ("/inspect/search", {"q": text, "family": "dicts"}),
            ("/inspect/metadata", {"family": "dicts", "key": "tag", "value": text}),
            ("/inspect/copy", of_thread),
            ("/inspect/delete", {**of_thread, "checkpoint": text}),
        ):
            page = checked_page(await client.get(path, params=query))
            assert str(7919 * 6841) not in page.text
            assert not any(tag == "img" for tag, _ in page.elements)
        state = (await client.get("/inspect/state.json", params={**of_thread, "checkpoint": text})).json()
        assert state["state"]["messages"][0]["content"] == text


async def test_a_message_of_a_megabyte_is_folded(open_client: OpenClient, make_config: MakeConfig) -> None:
    async with CheckpointStore(make_config(driver="pymysql")) as store:
        message = {"role": "user", "content": "word " * 200_000}
        await store.save("large", {"messages": [message], "deep": json.loads("[" * 150 + "]" * 150)})

    response = await open_client().get("/inspect/thread?family=dicts&thread=large")

    assert "998 501 characters more" in checked_page(response).text.replace("\u202f", " ")
    assert len(response.content) < 400_000


async def test_stored_data_cannot_make_a_page_huge(open_client: OpenClient, make_config: MakeConfig) -> None:
    deep: Any = [1] * 2_000
    for _ in range(150):
        deep = [deep]
    calls = [{"id": str(at), "name": "look", "arguments": {"at": at}} for at in range(3_000)]
    async with CheckpointStore(make_config(driver="pymysql")) as store:
        conversation = [{"role": "assistant", "content": "\u202e" * 4_000, "tool_calls": calls}]
        await store.save("huge", {"messages": conversation, "deep": deep}, checkpoint_id="before")
        many = [{"role": "user", "content": f"{at}"} for at in range(3_000)]
        await store.save("huge", {"messages": many, "deep": [*deep, deep]}, checkpoint_id="after")

    client = open_client()
    of_thread = {"family": "dicts", "thread": "huge"}
    shown = await client.get("/inspect/thread", params={**of_thread, "checkpoint": "before"})
    assert "2\u202f950 further calls" in checked_page(shown).text
    changed = await client.get("/inspect/difference", params={**of_thread, "before": "before", "after": "after"})
    assert "More messages changed than are shown here." in checked_page(changed).text
    state = await client.get("/inspect/state.json", params={**of_thread, "checkpoint": "after"})
    assert state.json()["state"]["messages"] == many
    for response in (shown, changed, state):
        assert len(response.content) < 1_000_000


async def test_a_long_conversation_has_pages(open_client: OpenClient, make_config: MakeConfig) -> None:
    async with CheckpointStore(make_config(driver="pymysql")) as store:
        await store.save("long", {"messages": [{"role": "user", "content": f"message {at};"} for at in range(450)]})
    client = open_client()

    def shown(page: Page) -> list[str]:
        return [str(attributes["id"]) for tag, attributes in page.elements if tag == "li" and "id" in attributes]

    newest = checked_page(await client.get("/inspect/thread?family=dicts&thread=long"))
    assert shown(newest) == [f"m{at}" for at in range(251, 451)]
    (earlier,) = [link for link in newest.links() if link.endswith("#conversation")]
    assert shown(checked_page(await client.get(earlier))) == [f"m{at}" for at in range(51, 251)]


async def test_the_timeline_of_a_state_of_long_ago_begins_with_it(
    client: httpx.AsyncClient, make_config: MakeConfig
) -> None:
    conversation = [{"role": "user", "content": f"Turn {number}"} for number in range(110)]
    async with CheckpointStore(make_config()) as store:
        for number in range(110):
            await store.save("long", {"messages": conversation[: number + 1], "step": number}, f"c{number}")

    async def shown(checkpoint: str) -> tuple[list[str], list[str], str]:
        response = await client.get(f"/inspect/thread?family=dicts&thread=long{checkpoint}")
        page = checked_page(response)
        places = [attributes for tag, attributes in page.elements if tag == "input" and attributes["type"] == "radio"]
        listed = [str(one["value"]) for one in places if one["name"] == "before"]
        return listed, [str(one["value"]) for one in places if "checked" in one], response.text

    listed, checked, text = await shown("")
    assert (listed[0], len(listed), checked) == ("c109", 100, ["c109", "c108"])
    assert "Newest checkpoints" not in text
    assert (await shown("&checkpoint=c50"))[0] == listed
    listed, checked, text = await shown("&checkpoint=c5")
    assert (listed, checked) == ([f"c{number}" for number in range(5, -1, -1)], ["c5", "c4"])
    assert "Newest checkpoints" in text
    assert text.count('class="quiet">saved <time') == 6
    assert "Iterations over 6 checkpoints: first 0, last 5" in text


async def test_a_write_during_the_rendering_of_a_page_is_announced_to_it(
    client: httpx.AsyncClient, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = BlockingInspector.state
    async with Inspector(make_config()) as inspector:
        with SyncCheckpointStore(make_config()) as store:
            store.save("t", {"n": 1})

            async def state(self: BlockingInspector, *arguments: Any, **options: Any) -> Any:
                found = await look(self, *arguments, **options)
                store.save("t", {"n": 2})
                return found

            monkeypatch.setattr(BlockingInspector, "state", state)
            response = await client.get("/inspect/thread?family=dicts&thread=t")
        seen = re.search(r"seen=([0-9A-F]+)\"", response.text)
        assert seen is not None
        assert seen[1] != (await inspector.changed([("dicts", "t")]))["dicts", "t"]


@pytest.mark.usefixtures("filled_anew")
async def test_damage_is_reported_and_breaks_no_page(
    open_client: OpenClient, run_sql: Callable[..., object], database: str
) -> None:
    run_sql(f"UPDATE {database}.locus_checkpoints SET payload = 'x', metadata = '[1]'")
    client = open_client()

    assert "support-48213" in checked_page(await client.get("/?family=agents")).text
    page = checked_page(await client.get(THREAD_PAGE))
    assert "Damaged." in page.text
    response = await client.get(
        f"/inspect/difference?family=agents&thread={THREAD}&before=01HZX9A01K3&after=01HZX9A02K3"
    )
    assert "Stored data is damaged" in checked_page(response, 500).text


#: Invalid requests, with the status of their refusal.
REFUSED = (
    ("/?family=nothing", 400),
    ("/?cursor=%ff", 400),
    ("/?cursor=nonsense", 400),
    ("/inspect/thread", 400),
    ("/inspect/thread?family=agents&thread=" + "x" * 600, 400),
    ("/inspect/thread?family=agents&thread=a%00b", 400),
    (f"{THREAD_PAGE}&at=yesterday", 400),
    (f"{THREAD_PAGE}&checkpoint=none", 404),
    (f"{THREAD_PAGE}&first=ten", 400),
    ("/inspect/memories?namespace=ann", 400),
    ("/inspect/memories?namespace=" + "[" * 5000, 400),
    ("/inspect/memory?key=a&namespace=[]", 400),
    ("/inspect/session?session=none", 404),
    (f"/inspect/difference?family=agents&thread={THREAD}&before=a&after=b", 404),
)


@pytest.mark.usefixtures("filled_pages")
async def test_a_page_refuses_an_invalid_query(client: httpx.AsyncClient) -> None:
    for address, status in REFUSED:
        checked_page(await client.get(address), status)


async def test_a_database_that_is_away_has_a_page(open_client: OpenClient) -> None:
    client = open_client(store={"host": "127.0.0.1", "port": 1, "connect_timeout_s": 0.2, "retry_deadline_s": 0.2})
    for address in ("/", THREAD_PAGE, "/inspect/statistics"):
        response = await client.get(address)
        assert "The database cannot be reached" in checked_page(response, 503).text
        assert response.headers["retry-after"]


async def test_memories_are_searched_by_meaning_where_there_is_an_embedder(
    open_client: OpenClient, make_config: MakeConfig
) -> None:
    embed = HashingEmbedder(64)
    async with MemoryStore(make_config(driver="pymysql"), embed=embed, dims=64) as memories:
        await memories.put(("customers",), "tent", {"text": "Owns a tent."})
        await memories.put(("customers",), "boat", {"text": "Rows a boat."})

    by_word = checked_page(await open_client().get("/inspect/memories?q=tent"))
    by_meaning = checked_page(await open_client(embed=embed, dims=64).get("/inspect/memories?q=a tent&way=meaning"))

    assert not [tag for tag, attributes in by_word.elements if attributes.get("name") == "way"]
    assert [tag for tag, attributes in by_meaning.elements if attributes.get("name") == "way"] == ["select"]
    found = [link for link in by_meaning.links() if link.startswith("/inspect/memory?")]
    assert "key=tent" in found[0]


async def test_files_beside_the_pages_are_kept_by_browsers(client: httpx.AsyncClient) -> None:
    page = checked_page(await client.get("/"))
    addresses = {
        attributes.get("href") or attributes.get("src")
        for tag, attributes in page.elements
        if tag in {"link", "script"}
    }
    assert len(addresses) == 3
    for address in addresses:
        response = await client.get(str(address))
        assert response.status_code == 200
        assert "immutable" in response.headers["cache-control"]
    assert (await client.get("/static/style.css")).headers["cache-control"] == "no-cache"
    assert (await client.get("/static/..%2fendpoints.py")).status_code == 404


async def test_one_tenant_sees_nothing_of_another(open_client: OpenClient, make_config: MakeConfig) -> None:
    async with Database(make_config(driver="pymysql")) as database:
        async for _ in fill(database, "acme"):
            pass
        await fill_the_rest(database, "acme")

    client = open_client(store={"tenant": "other"})

    for name, address in PAGES.items():
        if not name.startswith(("threads", "search", "metadata", "statistics", "memories", "sessions", "namespace")):
            checked_page(await client.get(address), 403 if name in {"copy", "branch", "delete"} else 404)
        else:
            page = checked_page(await client.get(address))
            assert not [tag for tag, attributes in page.elements if "data-entry" in attributes], name


async def test_links_lead_below_the_path_that_it_is_mounted_under(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    async with CheckpointStore(config) as store:
        await store.save("a thread", {"messages": [{"role": "user", "content": "hello"}]})
    token = new_token("ann", config.tenant, "write")
    async with Database(config) as database:
        outer = Starlette(routes=[Mount("/memory of agents", create_app(database, tokens=Tokens(token.entry)))])
        transport = httpx.ASGITransport(outer)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            asked = await client.get("/memory%20of%20agents/?q=a")
            assert asked.headers["location"].startswith("/memory%20of%20agents/login?next=")
            form = checked_page(await client.get(asked.headers["location"])).inputs()
            signed_in = await client.post("/memory%20of%20agents/login", data={**form, "token": token.secret})
            assert signed_in.headers["location"] == "/memory%20of%20agents/?q=a"
            page = checked_page(await client.get(signed_in.headers["location"]))
            assert "a thread" in page.text
            for tag, attributes in page.elements:
                for name in ("href", "src", "action"):
                    address = attributes.get(name) or "#"
                    assert address.startswith(("/memory%20of%20agents/", "#")), (tag, address)
            (thread,) = [link for link in page.links() if "thread=" in link]
            assert "hello" in checked_page(await client.get(thread)).text


async def test_few_differences_of_a_tenant_are_worked_out_at_once_and_others_are_served_meanwhile(
    open_client: OpenClient, filled_pages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comparison blocks its thread in this test, as a comparison of very long conversations would."""
    client = open_client(limits=Limits(request_s=600))
    at_work = Semaphore(0)
    goes_on = Event()

    def slowly(*views: Any) -> Any:
        at_work.release()
        assert goes_on.wait(120)
        return difference(*views)

    monkeypatch.setattr(inspector, "difference", slowly)
    asked = [asyncio.create_task(client.get(PAGES["difference"])) for _ in range(12)]
    try:
        for _ in range(MySQLConfig.model_fields["pool_size"].default // 2):
            assert await asyncio.to_thread(at_work.acquire, timeout=120)
        assert (await client.get(PAGES["difference"].partition("?")[0] + "?family=nothing")).status_code == 400
        assert (await client.get("/health")).status_code == 200
        assert not at_work.acquire(blocking=False)
    finally:
        goes_on.set()
        answers = await asyncio.gather(*asked)
    assert {answer.status_code for answer in answers} == {200}
