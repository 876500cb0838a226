from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from guided_testing.deployment import DOCKER, documents, engine_variables, frontend_variables

FILES = sorted(DOCKER.glob("compose*.yaml"))


def merged() -> dict[str, Any]:
    return documents(DOCKER / "compose.yaml")[0]


def substitute(text: str) -> str:
    """Compose's ${NAME:-default} and ${NAME:+value} with nothing set."""
    return re.sub(r"\$\{\w+:\+[^}]*\}", "", re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_the_compose_specification_accepts_it(path: Path) -> None:
    spec = find_spec("check_jsonschema")
    assert spec and spec.origin
    schema = Path(spec.origin).parent / "builtin_schemas/vendor/compose-spec.json"
    # its $schema is spelled in a way that jsonschema does not look up
    jsonschema.Draft7Validator(json.loads(schema.read_text())).validate(documents(path)[0])


def test_every_bind_mount_and_build_file_exists() -> None:
    for name, service in merged()["services"].items():
        for volume in service.get("volumes", ()):
            source = substitute(volume).split(":")[0]
            if source.startswith("."):
                assert (DOCKER / source).is_dir(), (name, source)
            elif not source.startswith("/"):
                assert source in merged()["volumes"], (name, source)
        if "build" in service:
            assert (DOCKER.parent / service["build"]["dockerfile"]).is_file()


@pytest.mark.parametrize(("service", "known"), [("server", engine_variables()), ("frontend", frontend_variables())])
def test_environment_variables_are_ones_that_the_process_reads(service: str, known: dict[str, Any]) -> None:
    assert set(merged()["services"][service]["environment"]) <= set(known)


def test_server_and_frontend_read_the_same_weights() -> None:
    services = merged()["services"]
    assert services["server"]["environment"]["GUIDED_MODEL"] == services["frontend"]["environment"]["GUIDED_MODEL"]


def test_nothing_but_loopback_ports_leaves_the_host_and_triton_has_none() -> None:
    published = {name: service.get("ports", []) for name, service in merged()["services"].items()}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)
    assert published["server"] == []
    assert merged()["services"]["server"]["networks"] == ["inside"]
    assert merged()["networks"]["inside"]["internal"] is True


def test_every_service_drops_all_capabilities() -> None:
    for name, service in merged()["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name


def test_the_server_gets_longer_to_stop_than_it_waits_for_requests() -> None:
    server = merged()["services"]["server"]
    waits = next(int(a.split("=")[1]) for a in server["command"] if a.startswith("--exit-timeout-secs="))
    assert int(server["stop_grace_period"].removesuffix("s")) >= waits + 5


def test_the_collector_reads_the_file_that_is_mounted() -> None:
    service = merged()["services"]["otel-collector"]
    assert service["profiles"] == ["tracing"]
    assert service["command"] == ["--config=/etc/otel/collector.yaml"]
    config = documents(DOCKER / "otel/collector.yaml")[0]
    for pipeline in config["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= set(config[kind])
