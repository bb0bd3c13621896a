"""A fake API server with the parts that `flexspot audit` uses: discovery, lists in pages, and forbidden lists. Not a test.

Its answers have the form of a real one's (k8s.io/apimachinery, meta/v1: APIGroupList, APIResourceList, List with `continue`), which
tests/lab/test_audit.py uses.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

CLUSTER_WIDE = {"Node", "Namespace", "NodePool", "ClusterQueue", "ResourceFlavor", "PriorityClass"}


@dataclass
class Served:
    """Content and behaviour of the server."""

    objects: list[dict[str, Any]]
    version: str = "v1.36.1"
    forbidden: set[str] = field(default_factory=set[str])
    forget_once: bool = False
    missing: set[str] = field(default_factory=set[str])
    asked: list[str] = field(default_factory=list[str])
    """Methods and paths of received requests."""

    def resources(self) -> dict[tuple[str, str], str]:
        """Return the plural of every kind, by API version and kind."""
        found = {(each["apiVersion"], each["kind"]): f"{each['kind'].lower()}s" for each in self.objects}
        found |= {("v1", "Pod"): "pods", ("v1", "Node"): "nodes", ("v1", "Secret"): "secrets"}
        return found

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Return status and body."""
        if path in self.missing:
            return 404, {"kind": "Status", "code": 404}
        if path == "/version":
            return 200, {"gitVersion": self.version}
        if path == "/apis":
            groups: dict[str, list[dict[str, str]]] = {}
            for version in sorted({version for version, _ in self.resources() if "/" in version}, reverse=True):
                groups.setdefault(version.partition("/")[0], []).append({"groupVersion": version})
            listed = [{"name": name, "versions": each, "preferredVersion": each[0]} for name, each in groups.items()]
            return 200, {"groups": listed}
        api = path.removeprefix("/apis/").removeprefix("/api/")
        listed = [
            {"name": plural, "kind": kind, "namespaced": kind not in CLUSTER_WIDE, "verbs": ["get", "list"]}
            for (version, kind), plural in self.resources().items()
            if version == api
        ]
        if listed:
            return 200, {"resources": [*listed, {"name": f"{listed[0]['name']}/status", "kind": listed[0]["kind"], "verbs": ["get"]}]}
        return self._list(path, query)

    def _list(self, path: str, query: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        plural = path.rpartition("/")[2]
        if plural in self.forbidden or path in self.forbidden:
            return 403, {"kind": "Status", "status": "Failure", "code": 403}
        space = path.partition("/namespaces/")[2].partition("/")[0]
        version = path.partition("/namespaces/")[0].removeprefix("/apis/").removeprefix("/api/").removesuffix(f"/{plural}")
        kinds = {kind for (of, kind), name in self.resources().items() if name == plural and of == version}
        found = [
            each
            for each in self.objects
            if each["kind"] in kinds and each["apiVersion"] == version and (not space or each["metadata"].get("namespace") == space)
        ]
        begin, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        if begin and self.forget_once:
            self.forget_once = False
            return 410, {"kind": "Status", "code": 410, "metadata": {"continue": str(begin)}}
        more = {"continue": str(begin + limit)} if begin + limit < len(found) else {}
        # As the API server serves lists: items without apiVersion and kind.
        page = [{key: value for key, value in each.items() if key not in {"apiVersion", "kind"}} for each in found[begin : begin + limit]]
        return 200, {"items": page, "metadata": more}


@contextmanager
def serving(served: Served, folder: Path) -> Generator[Path]:
    """Yield a kubeconfig for a server with the content of `served`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            split = urlsplit(self.path)
            served.asked.append(f"GET {self.path}")
            status, body = served.answer(split.path, parse_qs(split.query))
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
            """Drop the message."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    path = folder / "kubeconfig"
    settings = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}],
        "users": [{"name": "a", "user": {"token": "hunter2"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    }
    path.write_text(yaml.safe_dump(settings))
    try:
        yield path
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
