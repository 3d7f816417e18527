{{/*
platform.source: where the platform itself came from, as YAML of kind, path and
spec: what the platform's PackageSource refers to, or the values when the chart
is rendered without a cluster.
*/}}
{{- define "platform.source" -}}
{{- if .Capabilities.APIVersions.Has "cozystack.io/v1alpha1" }}
{{- $own := lookup "cozystack.io/v1alpha1" "PackageSource" "" "cozystack.cozystack-platform" }}
{{- $ref := dig "spec" "sourceRef" (dict) $own }}
{{- if not $ref }}
{{- fail "package source \"cozystack.cozystack-platform\" is not in the cluster; the operator makes it when it starts with --platform-source-url" }}
{{- end }}
{{- $source := lookup "source.toolkit.fluxcd.io/v1" $ref.kind $ref.namespace $ref.name }}
{{- if not $source }}
{{- fail (printf "%s %q, which package source \"cozystack.cozystack-platform\" refers to, is not in namespace %q" $ref.kind $ref.name $ref.namespace) }}
{{- end }}
{{- dict "kind" $ref.kind "path" ($ref.path | default "") "spec" $source.spec | toYaml }}
{{- else }}
{{- dict "kind" .Values.source.kind "path" "" "spec" .Values.source.spec | toYaml }}
{{- end }}
{{- end }}
