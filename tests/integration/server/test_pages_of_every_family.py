"""What the pages show of each family's data: statuses, questions, changes, charts, texts and tasks."""

from __future__ import annotations

import asyncio
import contextlib
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base.id import uuid6

from ci.purchasing_desk import FORMATTED, LONG, WAITING, fill_all_families
from locus_mysql import (
    CheckpointStore,
    Database,
    MySQLConfig,
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLCheckpointSaver,
    SyncWorkingMemory,
)
from locus_mysql.errors import InvalidInput
from locus_mysql.families.registry import families
from locus_mysql.integrations.langgraph import MySQLSaver
from locus_mysql.working import TaskState, WorkingMemory

from ..conftest import MakeConfig
from .test_pages import Page, checked_page

GRAPH = "/inspect/thread?family=graphs&thread="
AGENT = "/inspect/thread?family=agents&thread="


@pytest.fixture(scope="module")
def filled_desk(shared_config: MySQLConfig) -> str:
    """Return the schema of the purchasing desk, which the tests only read."""

    async def fill() -> None:
        async with Database(shared_config.model_copy(update={"driver": "pymysql"})) as database:
            await fill_all_families(database)

    asyncio.run(fill())
    return str(shared_config.database)


@pytest.fixture
def database(request: pytest.FixtureRequest, database: str) -> str:
    """Return the test's schema: that of the purchasing desk if the test uses ``filled_desk``, or else a new one."""
    return str(request.getfixturevalue("filled_desk")) if "filled_desk" in request.fixturenames else database


def classes(page: Page) -> list[str]:
    return [name for _, attributes in page.elements for name in (attributes.get("class") or "").split()]


@pytest.mark.usefixtures("filled_desk")
async def test_lists_show_the_status_and_the_first_and_last_message_of_threads(client: httpx.AsyncClient) -> None:
    page = checked_page(await client.get("/?family=graphs"))
    for text in (
        "We need 4 new chairs in Malmö. Please order them.",
        "Order 4 chairs for 320 EUR?",
        "timed out after 30 s.",
        "Ordered. The lamps arrive on Friday.",
    ):
        assert text in page.text
    assert {"waiting", "failed", "done"} <= set(classes(page))
    for family in families():
        if family.holds_threads:
            page = checked_page(await client.get(f"/?family={family.name}"))
            assert any(tag == "a" and "data-entry" in attributes for tag, attributes in page.elements), family.name
    assert "From 8 to 17." in checked_page(await client.get("/?family=transcripts")).text


@pytest.mark.usefixtures("filled_desk")
async def test_a_waiting_graph_shows_its_question_first_and_its_writes_folded(client: httpx.AsyncClient) -> None:
    response = await client.get(GRAPH + WAITING)
    checked_page(response)
    banner = re.search(r'<div class="banner waiting"><b>Waiting for:</b>.*?</div>', response.text, re.DOTALL)
    assert banner is not None
    assert "Order 4 chairs for 320 EUR?" in banner[0]
    folded = re.search(r"<details>\s*<summary>1 write of tasks.*?</details>", response.text, re.DOTALL)
    assert folded is not None
    assert "__interrupt__" in folded[0]
    assert "__interrupt__" not in response.text.replace(folded[0], "")


@pytest.mark.usefixtures("filled_desk")
async def test_an_earlier_state_of_a_graph_has_no_banner(client: httpx.AsyncClient) -> None:
    page = checked_page(await client.get(GRAPH + WAITING))
    *_, first = [link for link in page.links() if "checkpoint=" in link and "thread?" in link]
    assert "banner" not in classes(checked_page(await client.get(first)))


@pytest.mark.usefixtures("filled_desk")
async def test_a_timeline_shows_nodes_steps_changes_and_milliseconds(client: httpx.AsyncClient) -> None:
    text = (await client.get(GRAPH + "order-lamps")).text
    rows = re.findall(r'data-entry><span class="when">(.*?)</a>', text, re.DOTALL)
    plain = [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows]
    assert len(plain) == 5
    assert all(re.search(r"\d\d:\d\d:\d\d\.\d{3}", row) for row in plain)
    for row, expected in zip(
        plain,
        ("place +1 message", "approve approved true", "plan +3 messages", "start +1 message", "input"),
        strict=True,
    ):
        assert expected in row
    assert "step 3" in plain[0]
    assert all(f"<figcaption>{title} " in text for title in ("Tokens", "Steps", "Seconds"))
    agent = checked_page(await client.get(AGENT + FORMATTED)).text
    assert "calls query" in agent
    assert "turn 2" in agent


#: Numbers and texts beyond what a float, a date or a page's own arithmetic can hold.
ODD_VALUES: list[Any] = [
    *(10**400, -(10**400), 10**4200, 1e308, -1e308, 5e-324, float("nan"), float("inf"), -float("inf"), 2**63, -1, True),
    *("", "NaN", "9" * 5_000, "\ud800", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-13-40", None),
    *([], {}, [10**400], {"": None}, {"total_tokens": 10**400}),
]


@pytest.mark.parametrize("family", ["dicts", "graphs", "graphs of LangGraph", "memories", "working"])
async def test_pages_show_odd_stored_values(client: httpx.AsyncClient, make_config: MakeConfig, family: str) -> None:
    config = make_config(driver="pymysql")
    for at, odd in enumerate(ODD_VALUES):
        await asyncio.to_thread(_store_odd, config, family, f"odd {at}", odd)
    starts = {"memories": "/inspect/memories", "working": "/inspect/sessions"}
    name = family if family == "dicts" else "graphs"
    links = {starts.get(family, f"/?family={name}"), f"/inspect/statistics?family={name}"}
    seen: set[str] = set()
    while links - seen:
        link = min(links - seen)
        seen.add(link)
        page = checked_page(await client.get(link))
        links |= {one for one in page.links() if one.startswith(("/inspect/memor", "/inspect/session"))}
        links |= {one for one in page.links() if one.startswith("/inspect/thread?") and "&checkpoint" not in one}
        links |= {one for one in page.links() if one.startswith("/inspect/difference?")} if len(seen) < 9 else set()
    assert len(seen) > len(ODD_VALUES) // 2


def _store_odd(config: MySQLConfig, family: str, name: str, odd: Any) -> None:
    """Store a value wherever a page may look for a number, a time or a text."""
    message = {"role": "user", "content": "hi", "usage_metadata": odd, "metadata": {"timestamp": odd}, "id": odd}
    counted = {**message, "usage_metadata": {"total_tokens": odd, "input_tokens": odd}, "created_at": odd, "text": odd}
    fields = {"confidence": odd, "iteration": odd, "total_tokens_used": odd, "step": odd, "started_at": odd}
    states = [{"messages": [message, counted][: at + 1], **fields, "at": at} for at in range(2)]
    with Database(config) as database:
        if family == "dicts":
            store = SyncCheckpointStore(database)
            for state in states:
                store.save(name, state)
        elif family == "graphs":
            saver = SyncMySQLCheckpointSaver(database)
            for at, state in enumerate(states):
                parent = None if at == 0 else str(at - 1)
                saver.put(thread_id=name, checkpoint_id=str(at), checkpoint_data=state, parent_checkpoint_id=parent)
        elif family == "graphs of LangGraph":
            graphs, config_of = MySQLSaver(database), {"thread_id": name, "checkpoint_ns": ""}
            for at, state in enumerate(states):
                values: dict[str, Any] = {**state, "messages": [AIMessage("hi", additional_kwargs=counted)] * (at + 1)}
                if isinstance(odd, int) and odd.bit_length() > 64:  # which LangGraph's serialiser refuses
                    values = {"messages": [HumanMessage("hi")] * (at + 1)}
                content: Any = {"v": 4, "id": str(uuid6()), "ts": str(odd), "channel_values": values}
                content |= {"channel_versions": dict.fromkeys(values, at), "versions_seen": {}}
                metadata: Any = {"source": odd, "step": odd, "parents": odd}
                with contextlib.suppress(TypeError):  # of LangGraph's serialiser
                    stored = graphs.put({"configurable": config_of}, content, metadata, dict.fromkeys(values, at))
                    config_of = stored["configurable"]
        elif family == "memories":
            with contextlib.suppress(InvalidInput):
                SyncMemoryStore(database).put(("odd",), name, {"text": odd, "at": odd, "created_at": odd})
        else:
            session = SyncWorkingMemory(name, database)
            session.set("variable", odd)
            session.set("task", {"task_id": name, "status": "running", "progress": odd, "current_step": odd})
            with contextlib.suppress(InvalidInput):  # NaN is not equal to itself
                session.set_task_state(TaskState(task_id=name, data={"odd": odd}))


async def test_an_older_page_of_a_timeline_shows_changes_too(
    client: httpx.AsyncClient, make_config: MakeConfig
) -> None:
    async with CheckpointStore(make_config(driver="pymysql")) as store:
        messages = [{"role": "user", "content": f"Turn {at}"} for at in range(105)]
        for at in range(105):
            await store.save("t", {"messages": messages[: at + 1]}, f"c{at}")
    page = checked_page(await client.get("/inspect/thread?family=dicts&thread=t"))
    assert "user: Turn 104" in page.text
    assert "user: Turn 0" not in page.text
    (older,) = [link for link in page.links() if "cursor=" in link]
    assert "user: Turn 0" in checked_page(await client.get(older)).text


@pytest.mark.usefixtures("filled_desk")
async def test_messages_are_formatted_or_shown_as_stored(client: httpx.AsyncClient) -> None:
    response = await client.get(AGENT + FORMATTED)
    page = checked_page(response)
    tags = {tag for tag, _ in page.elements}
    assert {"th", "strong", "blockquote", "ol"} <= tags
    assert "<strong>fell by 12 %</strong>" in response.text
    assert [link for link in page.links() if link.startswith("https:")] == ["https://example.com/lab/2026-47"]
    response = await client.get(f"{AGENT}{FORMATTED}&plain=true")
    stored = checked_page(response)
    assert "<strong>" not in response.text
    assert '<div class="said stored" dir="auto">## Complaints, week 47' in response.text
    assert not [link for link in stored.links() if link.startswith("https:")]


@pytest.mark.usefixtures("filled_desk")
async def test_a_long_thread_has_a_link_to_its_newest_message(client: httpx.AsyncClient) -> None:
    page = checked_page(await client.get(AGENT + LONG))
    assert "#end" in page.links()
    earlier = checked_page(await client.get(f"{AGENT}{LONG}&first=1"))
    (newest,) = [link for link in earlier.links() if link.endswith("#end")]
    assert newest.startswith("/inspect/thread?")
    assert "first=" not in newest


async def test_differences_leave_times_out_and_fold_unchanged_text(
    client: httpx.AsyncClient, make_config: MakeConfig
) -> None:
    context = " ".join(f"Sentence {at} stays as it is." for at in range(40))
    async with CheckpointStore(make_config(driver="pymysql")) as store:
        for name, word, at in (("one", "here", "10:00:00"), ("two", "there", "11:00:00")):
            messages = [{"role": "assistant", "content": f"The tent is {word}. {context}"}]
            state = {"messages": messages, "saved": {"updated_at": f"2026-11-26T{at}+00:00"}, "place": word}
            await store.save("t", state, name)
    address = "/inspect/difference?family=dicts&thread=t&before=one&after=two"
    response = await client.get(address)
    page = checked_page(response)
    assert "<del>here</del><ins>there</ins>" in response.text
    assert re.search(r"<summary>1\u202f\d{3} unchanged characters</summary>", response.text)
    assert "1 changed time left out." in page.text
    assert "2026-11-26T10:00:00" not in page.text
    assert "place" in page.text
    shown = checked_page(await client.get(f"{address}&times=true")).text
    assert "2026-11-26T10:00:00" in shown
    assert "left out" not in shown


@pytest.mark.usefixtures("filled_desk")
async def test_statistics_have_axes_and_include_families_without_threads(client: httpx.AsyncClient) -> None:
    for family in families():
        if family.holds_threads:
            text = checked_page(await client.get(f"/inspect/statistics?family={family.name}")).text
            assert datetime.now(UTC).strftime("%d %b") in text
            assert "Grows per day" not in text  # all threads are younger than a day
    response = await client.get("/inspect/statistics?family=graphs")
    today = datetime.now(UTC).date()
    assert f"most on {today}: 3." in response.text  # threads begun
    assert "Items created per day" in response.text
    assert "Sessions created per day" in response.text
    assert re.search(rf"Items created per day, \S+ to {today}: 4 in all", response.text)


@pytest.mark.usefixtures("filled_desk")
async def test_namespaces_are_a_tree_and_items_show_their_text(client: httpx.AsyncClient) -> None:
    response = await client.get("/inspect/memories")
    page = checked_page(response)
    entries = [unquoted for link in page.links() if (unquoted := link.partition("namespace=")[2])]
    assert quote('["customers"]', safe="") in [entry.replace("+", "%20") for entry in entries]
    assert re.search(r"mei\.tanaka</a>.*?<ul>.*?orders</a> <span class=\"quiet\">2 items", response.text, re.DOTALL)
    namespace = quote('["customers", "mei.tanaka", "orders"]')
    items = checked_page(await client.get(f"/inspect/memories?namespace={namespace}")).text
    assert "Prefers size M, and black over green." in items
    assert '{"text"' not in items
    item = await client.get(f"/inspect/memory?key=jacket&namespace={namespace}")
    checked_page(item)
    assert "<p>Prefers size M, and black over green.</p>" in item.text


@pytest.mark.usefixtures("filled_desk")
async def test_sessions_show_their_task_with_its_progress(client: httpx.AsyncClient) -> None:
    for address in ("/inspect/sessions", "/inspect/session?session=import-2026-11"):
        page = checked_page(await client.get(address))
        assert [attributes["value"] for tag, attributes in page.elements if tag == "progress"] == ["38"]
        for text in ("import the catalogue", "step 3 of 8", "Running", "Reads rows of the catalogue"):
            assert text in page.text


async def test_a_failed_task_shows_its_error_and_a_damaged_one_breaks_no_list(
    client: httpx.AsyncClient, make_config: MakeConfig, run_sql: object, database: str
) -> None:
    async with Database(make_config(driver="pymysql")) as opened:
        for name in ("failed", "damaged"):
            working = WorkingMemory(name, opened)
            await working.set_task_state(TaskState(task_id=f"task {name}").start().fail("The file is empty."))
    run_sql(  # type: ignore[operator]
        f"UPDATE `{database}`.locus_working_entries e JOIN `{database}`.locus_working_sessions s USING (tenant, sid) "
        "SET e.value = '[1' WHERE s.session_id = 'damaged'"
    )
    page = checked_page(await client.get("/inspect/sessions"))
    assert page.text.count("The file is empty.") == 1
    assert "damaged" in page.text


async def test_times_are_shown_and_read_in_the_chosen_time_zone(
    client: httpx.AsyncClient, make_config: MakeConfig
) -> None:
    async with CheckpointStore(make_config(driver="pymysql")) as store:
        saved = await store.save("t", {"n": 1}, "first")
    del saved
    address = "/inspect/thread?family=dicts&thread=t"
    (time,) = set(re.findall(r'begun <time datetime="([^"]*)"', (await client.get(address)).text))
    at = datetime.fromisoformat(time)
    form = checked_page(await client.get("/inspect/zone?next=" + quote(address, safe=""))).inputs()

    response = await client.post("/inspect/zone", data={**form, "zone": "Asia/Kathmandu"})

    assert response.status_code == 303
    assert response.headers["location"] == address
    assert "HttpOnly" in response.headers["set-cookie"]
    cookies = {"locus_mysql_zone": "Asia/Kathmandu"}
    here = at.astimezone(ZoneInfo("Asia/Kathmandu"))
    client.cookies.update(cookies)
    text = (await client.get(address)).text
    assert f">{here:%Y-%m-%d %H:%M:%S}</time>" in text
    assert "Times: Asia/Kathmandu." in text
    for minutes, found in ((1, True), (-1, False)):
        moment = here.replace(tzinfo=None).timestamp() + 60 * minutes
        asked = datetime.fromtimestamp(moment).strftime("%Y-%m-%dT%H:%M:%S")
        text = checked_page(await client.get(f"{address}&at={asked}")).text
        assert ("did not exist yet" not in text) is found


async def test_an_unknown_time_zone_is_utc_and_cannot_be_chosen(client: httpx.AsyncClient) -> None:
    form = checked_page(await client.get("/inspect/zone?next=//evil.example")).inputs()
    assert form["next"] == "/"
    for zone in ("../../etc/passwd", "Mars/Olympus", ""):
        checked_page(await client.post("/inspect/zone", data={**form, "zone": zone}), 400)
    checked_page(await client.post("/inspect/zone", data={"zone": "Europe/Berlin", "form_secret": "x"}), 403)
    client.cookies.set("locus_mysql_zone", "../../etc/localtime")
    assert "Times: UTC." in checked_page(await client.get("/")).text
