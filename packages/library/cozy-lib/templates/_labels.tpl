{{/*
cozy-lib.selector: the labels that pods are selected by. They never change over
the life of a release.
Argument: the chart's root context.
*/}}
{{- define "cozy-lib.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/*
cozy-lib.labels: the selector labels and what else every object carries.
Argument: the chart's root context.
*/}}
{{- define "cozy-lib.labels" -}}
{{ include "cozy-lib.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
