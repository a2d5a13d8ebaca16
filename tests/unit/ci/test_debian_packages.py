"""Parsing of apt's files and output, without running apt."""

from ci import debian_packages

DEB822 = """\
# The mirror
Types: deb
# http://snapshot.example/archive/debian/20250520T000000Z
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: https://vendor.example/repository
Suites: nodistro
Components: main
Enabled: no

Types: deb-src
URIs: http://sources.example/debian
Suites: bookworm
Components: main
"""


def test_deb822_sources_are_read_without_security_disabled_and_source_entries() -> None:
    assert debian_packages.archives_of_deb822(DEB822) == [
        debian_packages.Archive("http://mirror.example/debian", "/usr/share/keyrings/debian-archive-keyring.gpg")
    ]


def test_a_key_inside_a_deb822_source_is_kept_whole() -> None:
    key = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDMEYCQjIxYJ\n -----END PGP PUBLIC KEY BLOCK-----"
    text = f"Types: deb\nURIs: http://a.example/debian\nSuites: trixie\nComponents: main\nSigned-By:\n {key}\n"

    (archive,) = debian_packages.archives_of_deb822(text)

    assert archive.signed_by == key


ONE_LINE = """\
# deb http://commented.example/debian bookworm main
deb cdrom:[Debian 12]/ bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib # comment
deb http://security.example/debian-security bookworm-security main
deb-src http://mirror.example/debian bookworm main
deb https://containers.example/linux/debian bookworm stable
deb mirror+file:/etc/apt/mirrors/debian.list trixie main
"""


def test_one_line_sources_are_read() -> None:
    assert debian_packages.archives_of_one_line_entries(ONE_LINE) == [
        debian_packages.Archive("http://mirror.example/debian", "/k.gpg"),
        debian_packages.Archive("mirror+file:/etc/apt/mirrors/debian.list", None),
    ]


def test_the_packages_to_download_are_read_from_what_apt_prints() -> None:
    plan = """\
Reading package lists...
The following NEW packages will be installed:
  libcrypt1 mysql-server-core
'http://mirror.example/debian/pool/main/libx/libxcrypt/libcrypt1_4.5.2-1_amd64.deb' \
libcrypt1_1%3a4.5.2-1_amd64.deb 125360 SHA256:6ffd
'http://mirror.example/debian/pool/main/m/mysql/mysql-server-core_9.7.4-2_amd64.deb' \
mysql-server-core_9.7.4-2_amd64.deb 19000000 SHA256:9f9d
"""

    assert debian_packages.planned_packages(plan) == ["libcrypt1", "mysql-server-core"]


def test_a_mirrors_password_is_never_shown() -> None:
    assert debian_packages.without_credentials("E: http://me:secret@mirror.example/debian 404") == (
        "E: http://mirror.example/debian 404"
    )
