#!/usr/bin/env python3
"""Checks the unit and the chart of this directory without a network.

The templates of the chart use a small part of the template language, so that this program can render them: values,
`printf`, `quote`, `indent`, `toYaml` and `sha256sum`. An expression that it does not know is an error. The rendered
objects are compared with the shapes below: kinds, versions, required and known keys, and the names that objects use of
each other. If the package `kubernetes-validate` is installed, also in the directory that CODEWRIGHT_CHECK_PACKAGES names,
they are compared with the schemas of Kubernetes, strictly: an unknown key is an error.
"""

import hashlib
import json
import os
import pathlib
import re
import sys

if os.environ.get("CODEWRIGHT_CHECK_PACKAGES"):
    sys.path.insert(0, os.environ["CODEWRIGHT_CHECK_PACKAGES"])

try:
    import yaml
except ImportError:
    print("skipped: PyYAML is missing, so the chart is not checked")
    sys.exit(0)

try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

# The oldest version of Kubernetes that the chart is for, and newer ones.
VERSIONS = ["1.25", "1.28", "1.31", "1.34", "1.37"]
HERE = pathlib.Path(__file__).parent
CHART = HERE / "helm" / "codewright"
EXPRESSION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")


def fail(text):
    print(f"error: {text}")
    sys.exit(1)


def value_of(path, scope):
    value = scope
    for name in path.strip(".").split("."):
        if not isinstance(value, dict) or name not in value:
            fail(f"`{path}` is not a value of the chart")
        value = value[name]
    return value


def evaluate(text, scope):
    """The value of one expression."""
    first, *rest = [step.strip() for step in text.split("|")]
    words = re.findall(r'"[^"]*"|\S+', first)
    if words[0] == "printf":
        form = words[1].strip('"')
        for word in words[2:]:
            form = form.replace("%s", str(value_of(word, scope)), 1)
        result = form
    elif words[0] == "toYaml":
        result = yaml.safe_dump(value_of(words[1], scope), sort_keys=True).rstrip("\n")
    elif len(words) == 1 and words[0].startswith("."):
        result = value_of(words[0], scope)
    else:
        fail(f"unknown expression `{text}`")
    for step in rest:
        name, *arguments = step.split()
        if name == "quote":
            result = json.dumps(str(result))
        elif name == "indent":
            prefix = " " * int(arguments[0])
            result = "\n".join(prefix + line for line in str(result).rstrip("\n").split("\n"))
        elif name == "sha256sum":
            result = hashlib.sha256(str(result).encode()).hexdigest()
        else:
            fail(f"unknown function `{name}`")
    return str(result)


METADATA = {"name", "labels"}
# The keys of each kind below `spec` (or of the object): those that must exist, and those that may.
SHAPES = {
    ("v1", "ConfigMap"): (set(), set(), {"data"}),
    ("v1", "Service"): ({"selector", "ports"}, {"type", "clusterIP"}, {"spec"}),
    ("policy/v1", "PodDisruptionBudget"): ({"maxUnavailable", "selector"}, set(), {"spec"}),
    ("apps/v1", "StatefulSet"): (
        {"replicas", "serviceName", "selector", "template"},
        {"podManagementPolicy", "volumeClaimTemplates"},
        {"spec"},
    ),
}
POD = {"automountServiceAccountToken", "terminationGracePeriodSeconds", "securityContext", "containers", "volumes"}
CONTAINER = {
    "name", "image", "imagePullPolicy", "args", "workingDir", "env", "envFrom", "ports", "startupProbe",
    "readinessProbe", "livenessProbe", "securityContext", "resources", "volumeMounts",
}
PROBE = {"httpGet", "periodSeconds", "timeoutSeconds", "failureThreshold"}


def check_object(item):
    kind = (item.get("apiVersion"), item.get("kind"))
    if kind not in SHAPES:
        fail(f"unknown kind {kind}")
    required, optional, top = SHAPES[kind]
    if set(item) != {"apiVersion", "kind", "metadata"} | top:
        fail(f"{kind} has the keys {sorted(item)}")
    if set(item["metadata"]) != METADATA:
        fail(f"the metadata of {kind} has the keys {sorted(item['metadata'])}")
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", item["metadata"]["name"]):
        fail(f"`{item['metadata']['name']}` is not a name")
    spec = item.get("spec", {})
    if not required <= set(spec) <= required | optional:
        fail(f"{kind} has the specification {sorted(spec)}")


def check_schema(item):
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(item, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            where = ".".join(str(step) for step in error.path)
            fail(f"{item['kind']} is not valid in Kubernetes {version}: {where}: {error.message}")


def check_pod(item, objects):
    template = item["spec"]["template"]
    pod = template["spec"]
    selected = item["spec"]["selector"]["matchLabels"]
    if not selected.items() <= template["metadata"]["labels"].items():
        fail("the stateful set does not select its pods")
    if not set(pod) <= POD:
        fail(f"a pod has the keys {sorted(pod)}")
    volumes = {volume["name"] for volume in pod["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in item["spec"]["volumeClaimTemplates"]}
    maps = {one["metadata"]["name"] for one in objects if one["kind"] == "ConfigMap"}
    services = {one["metadata"]["name"] for one in objects if one["kind"] == "Service"}
    if item["spec"]["serviceName"] not in services:
        fail("the service of the stateful set is missing")
    for volume in pod["volumes"]:
        if "configMap" in volume and volume["configMap"]["name"] not in maps:
            fail("the configuration of a volume is missing")
    for container in pod["containers"]:
        if not set(container) <= CONTAINER:
            fail(f"a container has the keys {sorted(container)}")
        ports = {port["name"] for port in container["ports"]}
        for name in ["startupProbe", "readinessProbe", "livenessProbe"]:
            probe = container[name]
            if not set(probe) <= PROBE or probe["httpGet"]["port"] not in ports:
                fail(f"the {name} is wrong")
        for mount in container["volumeMounts"]:
            if mount["name"] not in volumes:
                fail(f"the volume `{mount['name']}` is missing")
    for service in (one for one in objects if one["kind"] == "Service"):
        if not service["spec"]["selector"].items() <= template["metadata"]["labels"].items():
            fail("a service selects no pods")
        for port in service["spec"]["ports"]:
            if port["targetPort"] not in {p["name"] for c in pod["containers"] for p in c["ports"]}:
                fail("a service has a port that no container has")


def render(values):
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    if chart.get("apiVersion") != "v2" or not {"name", "version", "type"} <= set(chart):
        fail("Chart.yaml is not a chart")
    scope = {"Values": values, "Release": {"Name": "team"}, "Chart": chart}
    objects = []
    for path in sorted((CHART / "templates").glob("*.yaml")):
        text = EXPRESSION.sub(lambda found: evaluate(found[1], scope), path.read_text())
        if "{{" in text:
            fail(f"{path.name} has an expression over several lines")
        objects += [item for item in yaml.safe_load_all(text) if item]
    return objects


def main():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    changed = json.loads(json.dumps(values))
    changed.update({"replicas": 3, "config": '{\n  "server": {"probes": "open"}\n}\n'})
    for one in [values, changed]:
        objects = render(one)
        for item in objects:
            check_object(item)
            if kubernetes_validate:
                check_schema(item)
        kinds = sorted(item["kind"] for item in objects)
        if kinds != ["ConfigMap", "PodDisruptionBudget", "Service", "Service", "StatefulSet"]:
            fail(f"the chart has the objects {kinds}")
        for item in objects:
            if item["kind"] == "StatefulSet":
                check_pod(item, objects)
                if item["spec"]["replicas"] != one["replicas"]:
                    fail("the number of servers is not used")
            if item["kind"] == "ConfigMap":
                config = json.loads(item["data"]["codewright.json"])
                if config["server"]["probes"] != "open":
                    fail("the probes need a password")
    print("checked: the chart with its own values and with three servers")
    if kubernetes_validate:
        print(f"checked: its objects with the schemas of Kubernetes {', '.join(VERSIONS)}")
    else:
        print("skipped: kubernetes-validate is missing, so the objects are not compared with the schemas of Kubernetes")


main()
