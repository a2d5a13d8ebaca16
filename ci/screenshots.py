"""Makes the pictures of the inspector in docs/images, which README and its page show.

Run it with a server:

ci/mysql run --fast -- .venv/bin/python -m ci.screenshots
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pymysql
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from ci import browser
from ci.purchasing_desk import WAITING, fill_graphs
from ci.support_desk import THREAD, fill, fill_the_rest
from locus_mysql import Database, MySQLConfig
from locus_mysql.server.application import create_app
from tests.integration.connecting import connect
from tests.integration.server.running import running

IMAGES = Path(__file__).resolve().parent.parent / "docs/images"
DSN = "LOCUS_MYSQL_TEST_DSN"
SCHEMA = "locus_screenshots"

#: Number of colours in a picture: enough for these pages, with a third of the bytes.
COLOURS = 128

#: Seconds between each save and the previous one, from the newest save backwards.
STEPS_S = (4, 6, 78, 540, 9, 41, 5, 7, 96, 8, 5, 11)


def main() -> None:
    """Make the pictures."""
    config = MySQLConfig(dsn=os.environ[DSN])
    connection = connect(config)
    with connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {SCHEMA}")
        try:
            here = config.model_copy(update={"database": SCHEMA, "driver": "pymysql"})
            asyncio.run(_fill(here, connection))
            with running(create_app(Database(here), allow_writes=True)) as base, sync_playwright() as playwright:
                chromium = playwright.chromium.launch(
                    executable_path=str(browser.chromium(_say)), args=list(browser.ARGUMENTS)
                )
                _take(chromium, f"{base}/?family=graphs", "inspector-threads.png", "light", height=760)
                waiting = f"{base}/inspect/thread?family=graphs&thread={WAITING}"
                _take(chromium, waiting, "inspector-waiting.png", "light", height=1000)
                thread = f"{base}/inspect/thread?family=agents&thread={THREAD}"
                _take(chromium, thread, "inspector-thread.png", "light", open_call="find_order")
                compared = thread.replace("/thread?", "/difference?") + "&before=01HZX9A09K3&after=01HZX9B12K3"
                _take(chromium, compared, "inspector-difference.png", "dark")
                chromium.close()
        finally:
            cursor.execute(f"DROP DATABASE {SCHEMA}")


async def _fill(config: MySQLConfig, connection: pymysql.Connection[Any]) -> None:
    """Save the conversations, and change their times to realistic intervals."""
    async with Database(config) as database:
        saved = [one async for one in fill(database)]
        await fill_the_rest(database)
        await fill_graphs(database)
    at = datetime.now(UTC).replace(hour=3, minute=12, second=9, microsecond=0, tzinfo=None)
    with connection.cursor() as cursor:
        cursor.execute(f"USE {SCHEMA}")
        for (thread_id, checkpoint_id), step_s in zip(
            reversed(saved), [*STEPS_S, *range(240, 4000, 400)], strict=False
        ):
            cursor.execute(
                "UPDATE locus_checkpoints SET created_at = %s WHERE thread_id = %s AND checkpoint_id = %s",
                (at, thread_id, checkpoint_id),
            )
            cursor.execute(
                "UPDATE locus_threads SET created_at = LEAST(created_at, %s), "
                "updated_at = IF(updated_at > NOW() - INTERVAL 1 HOUR, %s, updated_at) WHERE thread_id = %s",
                (at, at, thread_id),
            )
            at -= timedelta(seconds=step_s)


def _take(
    chromium: Browser,
    address: str,
    name: str,
    scheme: Literal["light", "dark"],
    open_call: str | None = None,
    height: int = 1100,
) -> None:
    page = chromium.new_page(viewport={"width": 1280, "height": height}, color_scheme=scheme)
    page.goto(address)
    if open_call:
        page.locator(".call", has_text=open_call).locator("summary").click()
        page.locator("[data-live]").wait_for()
        page.mouse.move(0, 0)
        page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    picture = Image.open(io.BytesIO(page.screenshot()))
    IMAGES.mkdir(parents=True, exist_ok=True)
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)
    _say(f"{IMAGES / name}: {(IMAGES / name).stat().st_size:,} bytes")
    page.close()


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
