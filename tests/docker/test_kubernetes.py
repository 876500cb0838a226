"""The Helm chart, rendered by Helm's own engine, and the KServe manifests, against Kubernetes' schemas."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import helm_python
import pytest
import tomllib
import yaml  # type: ignore[import-untyped]
from guided_engine.metrics import GAUGES
from guided_testing.deployment import DOCKER, ROOT, documents, engine_variables, frontend_variables, selectors

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import kubernetes_validate

CHART = DOCKER / "kubernetes/chart"
KSERVE = DOCKER / "kubernetes/kserve"
OLDEST, NEWEST = "1.30", "1.37"
# kinds that an operator defines; Kubernetes' own schemas do not know them
FOREIGN = {"PodMonitor", "PrometheusRule", "GRPCRoute"}
Manifest = dict[str, Any]

EVERYTHING: dict[str, Any] = {
    "image": {"pullSecrets": [{"name": "registry"}]},
    "model": {"folder": "Qwen3-8B", "unpackEmbedded": False},
    "weights": {"volume": {"emptyDir": None, "persistentVolumeClaim": {"claimName": "models"}}, "readOnly": True},
    "server": {"env": {"GUIDED_MAX_ROWS": 64}, "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "64Gi"}}},
    "frontend": {"env": {"GUIDED_SERVED_MODEL_NAMES": "qwen3,gpt-4o"}, "apiKeysSecret": "keys"},
    "ingress": {"enabled": True, "className": "nginx", "host": "llm.example.com", "tlsSecret": "tls",
                "annotations": {"nginx.ingress.kubernetes.io/proxy-buffering": "off"}},
    "grpc": {"enabled": True, "parentRefs": [{"name": "gateway"}]},
    "autoscaling": {"enabled": True},
    "networkPolicy": {"clients": [{"podSelector": {"matchLabels": {"app": "chat"}}}], "allowInternet": True,
                      "monitoring": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]},
    "monitoring": {"podMonitor": True, "rules": True, "dashboard": True, "labels": {"release": "prometheus"}},
    "podAnnotations": {"a": "b"},
    "nodeSelector": {"gpu": "h200"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    "priorityClassName": "serving",
    "runtimeClassName": "nvidia",
    "strategy": {"type": "Recreate", "rollingUpdate": None},
}  # fmt: skip
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": EVERYTHING,
    "bare": {"networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": False}},
    "grpc without a gateway": {"grpc": {"enabled": True}},
}


def render(values: dict[str, Any], name: str = "demo") -> list[Manifest]:
    with helm_python.Chart.load(CHART) as chart:
        chart.validate_schema(values)
        files = chart.render(values, name=name, namespace="llm")
    texts = [text for path, text in sorted(files.items()) if path.endswith(".yaml")]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


def one(manifests: list[Manifest], kind: str, ending: str = "") -> Manifest:
    (found,) = [m for m in manifests if m["kind"] == kind and m["metadata"]["name"].endswith(ending)]
    return found


def pod(manifests: list[Manifest]) -> dict[str, Any]:
    spec: dict[str, Any] = one(manifests, "Deployment")["spec"]["template"]["spec"]
    return spec


def server(manifests: list[Manifest]) -> dict[str, Any]:
    return next(c for c in pod(manifests)["initContainers"] if c["name"] == "server")


def check(manifest: Manifest) -> None:
    for version in (OLDEST, NEWEST):
        kubernetes_validate.validate(copy.deepcopy(manifest), version, strict=True)


def test_helm_lint_finds_nothing() -> None:
    report = helm_python.lint(CHART, strict=True, kube_version=f"v{OLDEST}.0")
    assert [m for m in report["messages"] if m["severity"] > 1] == [] and report["errors"] == []


@pytest.mark.parametrize("name", VALUES)
def test_what_it_renders_is_what_kubernetes_accepts(name: str) -> None:
    manifests = render(VALUES[name])
    assert "Deployment" in {m["kind"] for m in manifests}
    for manifest in manifests:
        if manifest["kind"] not in FOREIGN:
            check(manifest)


def test_a_manifest_with_a_misspelt_field_would_be_found() -> None:
    broken = one(render({}), "Deployment")
    broken["spec"]["template"]["spec"]["containers"][0]["imagePullPolcy"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError, match="imagePullPolcy"):
        check(broken)


@pytest.mark.parametrize(
    "values",
    [
        {"replica": 2},
        {"server": {"env": {"guided max rows": 1}}},
        {"grpc": {"enabled": "yes"}},
        {"model": {"folder": "/etc"}},
        {"service": {"port": 0}},
    ],
    ids=["misspelt", "no variable name", "not a flag", "absolute folder", "no port"],
)
def test_wrong_values_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(helm_python.HelmError):
        render(values)


@pytest.mark.parametrize(
    ("values", "told"),
    [({"weights": {"readOnly": True}}, "unpackEmbedded"), ({"ingress": {"enabled": True}}, "ingress.host")],
)
def test_values_that_contradict_each_other_say_so(values: dict[str, Any], told: str) -> None:
    with pytest.raises(helm_python.HelmError, match=told):
        render(values)


def test_every_selector_meets_the_pods_labels() -> None:
    manifests = render(EVERYTHING)
    labels = one(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"]
    wanted = [
        one(manifests, "Deployment")["spec"]["selector"]["matchLabels"],
        one(manifests, "Service", "guided")["spec"]["selector"],
        one(manifests, "Service", "grpc")["spec"]["selector"],
        one(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        one(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        one(manifests, "PodMonitor")["spec"]["selector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels.items() for selector in wanted)


def test_names_that_are_referred_to_exist() -> None:
    manifests = render(EVERYTHING)
    deployment, service = one(manifests, "Deployment"), one(manifests, "Service", "guided")
    ports = {port["name"] for c in (*pod(manifests)["containers"], server(manifests)) for port in c["ports"]}
    assert service["spec"]["ports"][0]["targetPort"] in ports
    assert {e["port"] for e in one(manifests, "PodMonitor")["spec"]["podMetricsEndpoints"]} <= ports
    target = one(manifests, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])
    backend = one(manifests, "Ingress")["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"]
    assert backend == service["metadata"]["name"]
    route = one(manifests, "GRPCRoute")["spec"]["rules"][0]["backendRefs"][0]
    grpc = one(manifests, "Service", "grpc")
    assert (route["name"], route["port"]) == (grpc["metadata"]["name"], grpc["spec"]["ports"][0]["port"])
    volumes = {v["name"] for v in pod(manifests)["volumes"]}
    mounts = {m["name"] for c in (*pod(manifests)["containers"], server(manifests)) for m in c["volumeMounts"]}
    assert mounts == volumes


@pytest.mark.parametrize("name", VALUES)
def test_containers_get_variables_that_they_read(name: str) -> None:
    manifests = render(VALUES[name])
    assert {e["name"] for e in server(manifests)["env"]} <= set(engine_variables())
    assert {e["name"] for e in pod(manifests)["containers"][0]["env"]} <= set(frontend_variables())


@pytest.mark.parametrize("name", VALUES)
def test_every_container_is_unprivileged(name: str) -> None:
    spec = pod(render(VALUES[name]))
    assert spec["securityContext"]["runAsNonRoot"] and not spec["automountServiceAccountToken"]
    for container in (*spec["initContainers"], *spec["containers"]):
        context = container["securityContext"]
        assert not context["allowPrivilegeEscalation"] and context["readOnlyRootFilesystem"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"], container["name"]


def test_triton_listens_on_loopback_unless_grpc_is_wanted() -> None:
    closed, opened = render({}), render({"grpc": {"enabled": True}})
    assert "--grpc-address=127.0.0.1" in server(closed)["args"] and "--http-address=127.0.0.1" in server(closed)["args"]
    assert "--grpc-address=0.0.0.0" in server(opened)["args"] and "--http-address=127.0.0.1" in server(opened)["args"]
    assert "--metrics-address=0.0.0.0" in server(closed)["args"]
    reachable = one(closed, "NetworkPolicy")["spec"]["ingress"]
    assert {p["port"] for rule in reachable for p in rule["ports"]} == {9000, 8002}


def test_the_server_is_a_sidecar_that_outlives_the_frontend() -> None:
    spec = pod(render({"drainSeconds": 40, "server": {"exitSeconds": 20}}))
    assert next(c for c in spec["initContainers"] if c["name"] == "server")["restartPolicy"] == "Always"
    frontend = spec["containers"][0]
    assert {"name": "GUIDED_DRAIN_TIMEOUT", "value": "40"} in frontend["env"]
    assert spec["terminationGracePeriodSeconds"] > frontend["lifecycle"]["preStop"]["sleep"]["seconds"] + 40 + 20


def test_scaling_replaces_the_fixed_number_and_reads_a_gauge_that_exists() -> None:
    manifests = render(EVERYTHING)
    assert "replicas" not in one(manifests, "Deployment")["spec"]
    metric = one(manifests, "HorizontalPodAutoscaler")["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert metric in GAUGES


def test_the_rules_are_those_of_prometheus_with_names_of_their_own() -> None:
    groups = one(render(EVERYTHING), "PrometheusRule")["spec"]["groups"]
    files = [documents(DOCKER / "prometheus" / name)[0]["groups"] for name in ("rates.yml", "alerts.yml")]
    assert groups == [group for file in files for group in file]
    assert len({group["name"] for group in groups}) == len(groups)


def test_chart_images_and_package_have_one_version() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = documents(CHART / "Chart.yaml")[0]
    values = documents(CHART / "values.yaml")[0]["image"]
    tags = {values["server"]["tag"], values["frontend"]["tag"]}
    composed = documents(DOCKER / "compose.yaml")[0]["services"]
    tags |= {composed[name]["image"].split(":")[1] for name in ("weights", "server", "frontend")}
    tags |= {container["image"].split(":")[1] for container in runtime()["spec"]["containers"]}
    assert {chart["version"], chart["appVersion"], *tags} == {package}


def runtime() -> Manifest:
    manifest: Manifest = documents(KSERVE / "servingruntime.yaml")[0]
    return manifest


def kserve_containers() -> Iterator[dict[str, Any]]:
    return iter(runtime()["spec"]["containers"])


def test_the_kserve_runtime_holds_a_pod_that_kubernetes_accepts() -> None:
    spec = {name: runtime()["spec"][name] for name in ("containers", "volumes")}
    check({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec})


def test_kserve_routes_to_the_frontend_and_mounts_the_model_in_both() -> None:
    engine, frontend = kserve_containers()
    assert (engine["name"], frontend["name"]) == ("kserve-container", "transformer-container")
    assert frontend["ports"][0]["containerPort"] == 9000
    assert {"--grpc-address=127.0.0.1", "--metrics-address=0.0.0.0"} <= set(engine["args"])
    assert {e["name"]: e["value"] for c in (engine, frontend) for e in c["env"] if e["name"] == "GUIDED_MODEL"} == {
        "GUIDED_MODEL": "/mnt/models"
    }
    assert {e["name"] for e in engine["env"]} <= set(engine_variables())
    assert {e["name"] for e in frontend["env"]} <= set(frontend_variables())


def test_the_inference_service_fits_the_runtime() -> None:
    service = documents(KSERVE / "inferenceservice.yaml")[0]
    predictor = service["spec"]["predictor"]
    model = predictor["model"]
    assert model["runtime"] == runtime()["metadata"]["name"]
    assert model["modelFormat"]["name"] in {f["name"] for f in runtime()["spec"]["supportedModelFormats"]}
    assert {e["name"] for e in model["env"]} <= set(engine_variables())
    query = predictor["autoScaling"]["metrics"][0]["external"]["metric"]["query"]
    assert {s.name for s in selectors(query)} <= set(GAUGES)
    _, frontend = kserve_containers()
    drain = next(int(e["value"]) for e in frontend["env"] if e["name"] == "GUIDED_DRAIN_TIMEOUT")
    waits = frontend["lifecycle"]["preStop"]["sleep"]["seconds"] + drain + 15
    assert predictor["terminationGracePeriodSeconds"] > waits
