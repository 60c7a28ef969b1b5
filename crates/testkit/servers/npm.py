"""Publishes packages into the directory of a file server: `npm.py HOST < packages.json`.

Each package has `name`, `version`, `files`, and optionally `manifest` (more keys), `members` (entries of the archive as
[name, content]), `links` ([name, target]), `executable` (names of files), `tampered` (the archive is not the one with
the digest) and `undigested`.
"""
import base64, hashlib, io, json, os, sys, tarfile

host = sys.argv[1]
packages = {}
for package in json.load(sys.stdin):
    name, version = package["name"], package["version"]
    manifest = {"name": name, "version": version, "main": "index.js", **package.get("manifest", {})}
    files = {"package.json": json.dumps(manifest), "index.js": "", **package.get("files", {})}

    def archive(files):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            members = [("package/" + path, content) for path, content in files.items()]
            for path, content in members + package.get("members", []):
                entry = tarfile.TarInfo(path)
                entry.size = len(content.encode())
                if path.removeprefix("package/") in package.get("executable", []):
                    entry.mode = 0o755
                tar.addfile(entry, io.BytesIO(content.encode()))
            for path, target in package.get("links", []):
                entry = tarfile.TarInfo("package/" + path)
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                tar.addfile(entry)
        return buffer.getvalue()

    content = archive(files)
    digest = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    if package.get("tampered"):
        content = archive({**files, "index.js": "tampered"})
    path = f"archives/{name.replace('/', '-')}-{version}.tgz"
    os.makedirs("archives", exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    dist = {"tarball": package.get("tarball", f"http://{host}/{path}")}
    if not package.get("undigested"):
        dist["integrity"] = digest
    entry = packages.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}})
    entry["dist-tags"]["latest"] = version
    entry["versions"][version] = {**manifest, "dist": dist}
    if "scripts" in manifest:
        entry["versions"][version]["hasInstallScript"] = True

for name, entry in packages.items():
    directory = name.replace("/", "%2f")
    os.makedirs(directory, exist_ok=True)
    with open(f"{directory}/index", "w") as file:
        json.dump(entry, file)
