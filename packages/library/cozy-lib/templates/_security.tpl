{{/*
cozy-lib.restricted: the security context of a container that needs no right at
all, as the "restricted" pod security standard asks.
*/}}
{{- define "cozy-lib.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}
