{{/*
cozy-lib.presets: the named sizes, as YAML. The step between neighbours is two
times the memory.
*/}}
{{- define "cozy-lib.presets" -}}
nano:    { cpu: 25m,  memory: 32Mi }
micro:   { cpu: 50m,  memory: 64Mi }
small:   { cpu: 100m, memory: 128Mi }
medium:  { cpu: 250m, memory: 256Mi }
large:   { cpu: 500m, memory: 512Mi }
xlarge:  { cpu: "1",  memory: 1Gi }
2xlarge: { cpu: "2",  memory: 2Gi }
{{- end }}

{{/*
cozy-lib.resources: a container's resources from explicit sizes, with what is
left open filled from a preset. Memory is limited to what is requested; CPU is
never limited, so that a start is as fast as the node allows.
Argument: a list of the preset's name and a dict of cpu and memory.
*/}}
{{- define "cozy-lib.resources" -}}
{{- $name := index . 0 }}
{{- $presets := include "cozy-lib.presets" . | fromYaml }}
{{- if not (hasKey $presets $name) }}
{{- fail (printf "resourcesPreset %q is unknown; use one of: %s" $name (keys $presets | sortAlpha | join ", ")) }}
{{- end }}
{{- $size := merge (dict) (index . 1 | default dict) (get $presets $name) -}}
requests:
  cpu: {{ $size.cpu | quote }}
  memory: {{ $size.memory | quote }}
limits:
  memory: {{ $size.memory | quote }}
{{- end }}
