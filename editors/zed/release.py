#!/usr/bin/env python3
"""Writes the extension of a release: the addresses and the checksums of its archives.

  release.py REPOSITORY BASE ARCHIVE…

Each ARCHIVE is a file with the name codewright-<os>-<arch>.tar.gz that will be at BASE/<name>. Prints the finished
extension.toml. Targets without an archive are left out. Needs Python 3.11."""
import hashlib
import pathlib
import re
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent


def sections(text):
    """Yields the parts of the manifest; each begins with the header of a table."""
    start = 0
    for match in re.finditer(r"^\[", text, re.MULTILINE):
        yield text[start : match.start()]
        start = match.start()
    yield text[start:]


def release(repository, base, archives):
    """Returns the manifest with the addresses and checksums of archives, by target."""
    for address in (repository, base):
        if not re.fullmatch(r"https://[^\s\"\\]+", address):
            sys.exit(f"`{address}` is not an https address")
    written = []
    for section in sections((HERE / "extension.toml").read_text(encoding="utf-8")):
        target = re.match(r"\[agent_servers\.codewright\.targets\.([\w-]+)\]", section)
        if target is None:
            section = re.sub(r"^#.*\n", "", section, flags=re.MULTILINE)
            line = f'repository = "{repository}"'
            section = re.sub(r'^repository = .*$', lambda _: line, section, flags=re.MULTILINE)
        else:
            path = archives.pop(target[1], None)
            if path is None:
                continue
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            line = f'archive = "{base.rstrip("/")}/{path.name}"\nsha256 = "{digest}"'
            section = re.sub(r"^archive = .*$", lambda _: line, section, flags=re.MULTILINE)
        written.append(section.rstrip("\n") + "\n")
    if archives:
        sys.exit(f"there is no target for {', '.join(sorted(archives))}")
    text = "\n".join(written)
    tomllib.loads(text)
    return text


def main(arguments):
    if len(arguments) < 3:
        sys.exit(__doc__)
    archives = {}
    for name in arguments[2:]:
        match = re.fullmatch(r"codewright-([a-z]+-\w+)\.tar\.gz", pathlib.Path(name).name)
        if match is None:
            sys.exit(f"`{name}` is not an archive of a target")
        archives[match[1]] = pathlib.Path(name)
    sys.stdout.write(release(arguments[0], arguments[1], archives))


if __name__ == "__main__":
    main(sys.argv[1:])
