//! Charts of our own: with hooks, definitions, a subchart and a schema of values.

/// A chart's files by path.
pub(super) type Files = Vec<(&'static str, &'static str)>;

const CHART: (&str, &str) = ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n");

const SETTINGS: (&str, &str) = (
    "templates/settings.yaml",
    "apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-settings
data:
  colour: {{ .Values.colour | quote }}
",
);

/// One ConfigMap, `<release>-settings`, with `colour` in it.
pub(super) fn settings() -> Files {
    vec![CHART, ("values.yaml", "colour: blue\n"), SETTINGS]
}

/// One Secret, `<release>-settings`, that the chart writes as text.
pub(super) fn secret() -> Files {
    let text = "apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}-settings
stringData:
  colour: {{ .Values.colour | quote }}
  shape: round
";
    vec![
        CHART,
        ("values.yaml", "colour: blue\n"),
        ("templates/secret.yaml", text),
    ]
}

/// All that a chart may have: a definition, a subchart, a schema, hooks of each phase with weights, and a test.
pub(super) fn everything() -> Files {
    vec![
        (
            "Chart.yaml",
            "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- name: cache\n  version: 0.1.0\n",
        ),
        ("values.yaml", "colour: blue\ncache:\n  size: 1\n"),
        (
            "values.schema.json",
            r#"{"type": "object", "properties": {"colour": {"type": "string"}}}"#,
        ),
        ("crds/gadgets.yaml", GADGETS),
        SETTINGS,
        (
            "templates/gadget.yaml",
            "apiVersion: example.org/v1\nkind: Gadget\nmetadata:\n  name: one\nspec:\n  a: 1\n",
        ),
        ("templates/hooks.yaml", HOOKS),
        (
            "charts/cache/Chart.yaml",
            "apiVersion: v2\nname: cache\nversion: 0.1.0\n",
        ),
        ("charts/cache/values.yaml", "size: 9\n"),
        (
            "charts/cache/templates/cache.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cache\ndata:\n  size: {{ .Values.size | quote }}\n",
        ),
    ]
}

/// Each hook is a ConfigMap, so that none waits for a node.
const HOOKS: &str = r#"{{- range $name, $hook := dict "late" "pre-install,pre-upgrade" "early" "pre-install,pre-upgrade" "after" "post-install,post-upgrade" "test" "test" "bye" "post-delete" }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: hook-{{ $name }}
  annotations:
    helm.sh/hook: {{ $hook }}
    helm.sh/hook-weight: {{ eq $name "late" | ternary 5 -5 | quote }}
    helm.sh/hook-delete-policy: before-hook-creation
data:
  revision: {{ $.Release.Revision | quote }}
{{- end }}
"#;

/// A definition of kind Gadget with field `a`.
pub(super) const GADGETS: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.org
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              a: {type: integer}
"#;

/// Only the definition, with these fields.
pub(super) fn definition(fields: &[&str]) -> Vec<(&'static str, String)> {
    let more: String = fields
        .iter()
        .map(|field| format!("              {field}: {{type: integer}}\n"))
        .collect();
    vec![
        (
            "Chart.yaml",
            format!("apiVersion: v2\nname: web\nversion: 1.0.{}\n", fields.len()),
        ),
        ("crds/gadgets.yaml", format!("{GADGETS}{more}")),
        SETTINGS.map_text(),
        ("values.yaml", "colour: blue\n".to_owned()),
    ]
}

trait MapText {
    fn map_text(self) -> (&'static str, String);
}

impl MapText for (&'static str, &'static str) {
    fn map_text(self) -> (&'static str, String) {
        (self.0, self.1.to_owned())
    }
}

/// A Deployment, which never becomes ready without nodes.
pub(super) fn deployment() -> Files {
    vec![
        CHART,
        ("values.yaml", "colour: blue\nreplicas: 1\n"),
        SETTINGS,
        (
            "templates/deployment.yaml",
            "apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: registry.example/web:1}
",
        ),
    ]
}

/// A Job before each install and upgrade where `block` is set, which never ends without nodes.
pub(super) fn blocking() -> Files {
    vec![
        CHART,
        (
            "values.yaml",
            "colour: blue\nblock: false\nhook: pre-install,pre-upgrade\n",
        ),
        SETTINGS,
        (
            "templates/block.yaml",
            r#"{{- if .Values.block }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-block
  annotations:
    helm.sh/hook: {{ .Values.hook }}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: wait, image: registry.example/wait:1}
{{- end }}
"#,
        ),
    ]
}

/// A ConfigMap whose name the API server refuses where `bad` is set.
pub(super) fn refused() -> Files {
    vec![
        CHART,
        ("values.yaml", "colour: blue\nbad: false\n"),
        SETTINGS,
        (
            "templates/zzz.yaml",
            "{{- if .Values.bad }}\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not_A_Name\n{{- end }}\n",
        ),
    ]
}

/// A Job that never ends without nodes, and no hook.
pub(super) fn job() -> Files {
    vec![
        CHART,
        ("values.yaml", "colour: blue\n"),
        SETTINGS,
        (
            "templates/job.yaml",
            "apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: work, image: registry.example/work:1}
",
        ),
    ]
}
