{{/*
nats.passwords: user names to passwords, as YAML. A password that nobody gave is
made once and found again in the Secret that it went to.
*/}}
{{- define "nats.passwords" -}}
{{- $made := dig "data" (dict) (lookup "v1" "Secret" .Release.Namespace (printf "%s-credentials" .Release.Name)) }}
{{- $passwords := dict }}
{{- range $user, $settings := .Values.users }}
{{- $given := dig "password" "" ($settings | default dict) }}
{{- $_ := set $passwords $user ($given | default (get $made $user | b64dec) | default (randAlphaNum 24)) }}
{{- end }}
{{- toYaml $passwords }}
{{- end }}

{{/*
nats.release: the server itself, the chart system/nats of the same package.
Argument: a dict of root, the root context, and auth, any text that changes with
the users; empty when there are none.
*/}}
{{- define "nats.release" -}}
{{- $name := .root.Release.Name -}}
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: {{ $name }}-system
  labels:
    {{- include "cozy-lib.labels" .root | nindent 4 }}
spec:
  chartRef:
    kind: ExternalArtifact
    name: cozystack-nats-application-default-nats-system
    namespace: cozy-system
  interval: 5m
  timeout: 10m
  install:
    strategy: { name: RetryOnFailure, retryInterval: 30s }
  upgrade:
    strategy: { name: RetryOnFailure, retryInterval: 30s }
  values:
    fullname: {{ $name }}
    {{- pick .root.Values "replicas" "external" "resourcesPreset" "resources" "jetstream" "config" | toYaml | nindent 4 }}
    {{- with .auth }}
    authSecret: {{ $name }}-auth
    authRevision: {{ . | quote }}
    {{- end }}
{{- end }}
