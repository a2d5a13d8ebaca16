"""Every registered family either stores no clear text, or is refused while encryption is on."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from locus_mysql import (
    Encryption,
    SyncCheckpointStore,
    SyncMemoryStore,
)
from locus_mysql.errors import EncryptionError
from locus_mysql.families.registry import find_family
from locus_mysql.integrations.memu.database import MemuDatabase
from locus_mysql.records.transfer import RowTarget
from locus_mysql.runtime.database import Database

from ..conftest import MakeConfig
from .conftest import KEYS, RunSQL, keys

#: One writer of clear text for each family whose tables hold it, by the family's name.
WRITERS: dict[str, Callable[[Any], object]] = {
    "memu": lambda config: MemuDatabase(config).memory_category_repo,
}


@pytest.mark.parametrize("family", WRITERS)
def test_a_family_without_encryption_is_refused_and_stores_nothing(
    family: str, make_config: MakeConfig, run_sql: RunSQL, database: str
) -> None:
    with pytest.raises(EncryptionError, match=f"family '{family}' do not support encryption"):
        WRITERS[family](make_config(driver="pymysql", encryption=keys()))
    assert run_sql(f"SHOW TABLES FROM {database}") == ()


@pytest.mark.parametrize("family", WRITERS)
def test_an_import_into_such_a_family_is_refused(family: str, make_config: MakeConfig) -> None:
    config = make_config(encryption=keys())
    with Database(config) as database, pytest.raises(EncryptionError, match=f"family '{family}'"):
        RowTarget(find_family(family).tables(config), config, database)


class TestCommand:
    """``locus-mysql reencrypt``, with keys in a file and in the environment."""

    def run(self, config: Any, file: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
        endpoint = config.endpoints[0]
        environment = {
            "LOCUS_MYSQL_HOST": endpoint.host,
            "LOCUS_MYSQL_PORT": str(endpoint.port),
            "LOCUS_MYSQL_USER": config.user,
            "LOCUS_MYSQL_PASSWORD": config.password.get_secret_value(),
            "LOCUS_MYSQL_DATABASE": config.database,
            "PATH": "/usr/bin:/bin",
        }
        given = [] if file is None else ["--key-file", str(file)]
        command = [sys.executable, "-m", "locus_mysql", "reencrypt", *given, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)

    def test_rows_are_rotated_and_checked(self, make_config: MakeConfig, tmp_path: Path) -> None:
        old = Encryption(keys={"2026-10": KEYS["2026-10"]}, active="2026-10")
        config = make_config(driver="pymysql", encryption=old)
        with SyncCheckpointStore(config) as store:
            for turn in range(3):
                store.save("t", {"turn": turn})
        file = tmp_path / "keys"
        file.write_text("\n".join(f"{name}={base64.b64encode(KEYS[name]).decode()}" for name in sorted(KEYS)[::-1]))
        refused = self.run(config, None)
        assert (refused.returncode, "there are no keys" in refused.stderr) == (1, True)
        checked = self.run(config, file, "--check")
        assert (checked.returncode, checked.stdout) == (1, "dicts: 3 with key 2026-10\n")
        done = self.run(config, file)
        assert (done.returncode, done.stdout) == (0, "dicts: 3 with key 2026-10. Encrypted anew: 3.\n")
        checked = self.run(config, file, "--check", "--family", "dicts")
        assert (checked.returncode, checked.stdout) == (0, "dicts: 3 with key 2026-11\n")
        shown = "".join(one.stdout + one.stderr for one in (refused, checked, done))
        assert not any(base64.b64encode(key).decode() in shown for key in KEYS.values())

    def test_the_check_says_when_clear_rows_need_not_be_read_any_more(
        self, make_config: MakeConfig, tmp_path: Path
    ) -> None:
        config = make_config(driver="pymysql", search=False)
        with SyncCheckpointStore(config) as store:
            store.save("t", {"turn": 1})
        file = tmp_path / "keys"
        file.write_text(f"2026-11={base64.b64encode(KEYS['2026-11']).decode()}\nreads_clear")
        checked = self.run(config, file, "--check")
        assert (checked.returncode, checked.stdout, checked.stderr) == (1, "dicts: 1 in clear text\n", "")
        assert self.run(config, file).returncode == 0
        checked = self.run(config, file, "--check")
        assert (checked.returncode, checked.stdout) == (0, "dicts: 1 with key 2026-11\n")
        assert "take reads_clear away from all programs" in checked.stderr

    def test_indexes_with_words_from_before_are_named_with_the_statement_that_removes_them(
        self, make_config: MakeConfig, run_sql: RunSQL, tmp_path: Path
    ) -> None:
        config = make_config(driver="pymysql")
        with SyncMemoryStore(config) as memories:
            memories.put(("a",), "k", {"text": "sesame"})
        with SyncCheckpointStore(config) as store:
            store.save("t", {"text": "sesame"})
        file = tmp_path / "keys"
        file.write_text(f"2026-11={base64.b64encode(KEYS['2026-11']).decode()}")
        done = self.run(config, file)
        assert done.returncode == 0
        statements = [line.partition("Remove them: ")[2] for line in done.stderr.splitlines()]
        assert statements == [
            "ALTER TABLE `locus_store_checkpoints` DROP KEY words, DROP KEY pending;",
            "ALTER TABLE `locus_memory_items` DROP KEY words, DROP KEY pending;",
        ]
        run_sql(f"USE {config.database}")
        for statement in statements:
            run_sql(statement.rstrip(";"))
        again = self.run(config, file)
        assert (again.returncode, again.stderr) == (0, "")
