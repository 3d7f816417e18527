{{/* nats.name: what the server and its objects are called. */}}
{{- define "nats.name" -}}
{{ .Values.fullname | default .Release.Name }}
{{- end }}
