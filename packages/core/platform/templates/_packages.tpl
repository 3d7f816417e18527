{{/* platform.known: the names of all packages that have a source, as YAML. */}}
{{- define "platform.known" -}}
{{- $names := list }}
{{- range $path, $_ := .Files.Glob "sources/*.yaml" }}
{{- $names = append $names (get ($.Files.Get $path | fromYaml).metadata "name") }}
{{- end }}
{{- $names | sortAlpha | toYaml }}
{{- end }}

{{/*
platform.check: fails for the first name that is no known package.
Argument: a list of the value's path, the names in it, and the known names.
*/}}
{{- define "platform.check" -}}
{{- range index . 1 }}
{{- if not (has . (index $ 2)) }}
{{- fail (printf "%s: unknown package %q; known packages: %s" (index $ 0) . (index $ 2 | join ", ")) }}
{{- end }}
{{- end }}
{{- end }}

{{/*
platform.bundled: the packages of all bundles, as YAML: package name to its
spec, whether it is wanted by default, and whether the cluster brings it.
*/}}
{{- define "platform.bundled" -}}
{{- $variant := .Values.bundles.system.variant }}
{{- $all := dict }}
{{- range $bundle := list "system" "paas" }}
{{- range tpl ($.Files.Get (printf "bundles/%s.yaml" $bundle)) $ | fromYamlArray }}
{{- $brought := has $variant (.broughtBy | default list) }}
{{- $wanted := and (get $.Values.bundles $bundle).enabled (not $brought) }}
{{- $_ := set $all .name (dict "wanted" $wanted "brought" $brought "spec" (omit . "name" "broughtBy")) }}
{{- end }}
{{- end }}
{{- toYaml $all }}
{{- end }}
