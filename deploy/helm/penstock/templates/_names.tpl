{{- define "penstock.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
{{- end }}

{{- define "penstock.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "penstock.secret" -}}
{{ .Values.secret.name | default (include "penstock.name" .) }}
{{- end }}

{{- define "penstock.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "penstock.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- /* What tells the pods of this release from others. */}}
{{- define "penstock.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "penstock.labels" -}}
{{ include "penstock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: penstock
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* Settings of all services; the job that migrates has them before there is a config map. */}}
{{- define "penstock.settings" -}}
PENSTOCK_HOST: 0.0.0.0
PENSTOCK_PORT: "8080"
PENSTOCK_GRACE: {{ .Values.grace | int64 | quote }}
{{- range $name, $value := .Values.settings }}
{{- /* Numbers come as floats: 1000000 would be written as 1e+06. */}}
{{- if kindIs "float64" $value }}{{ if eq $value (floor $value) }}{{ $value = int64 $value }}{{ end }}{{ end }}
{{ $name }}: {{ $value | toString | quote }}
{{- end }}
{{- end }}

{{- /* What `over` says, and the rest of `under`, as YAML; of the maps called `deep` likewise. */}}
{{- define "penstock.over" -}}
{{- $both := deepCopy .under }}
{{- range $key, $value := .over }}
{{- if and (kindIs "map" $value) (kindIs "map" (get $both $key)) (has $key $.deep) }}
{{- $inner := get $both $key }}
{{- range $name, $said := $value }}{{ $_ := set $inner $name $said }}{{ end }}
{{- else }}
{{- $_ := set $both $key $value }}
{{- end }}
{{- end }}
{{- toYaml $both }}
{{- end }}

{{- /* A group of workers with what it does not say itself. */}}
{{- define "penstock.group" -}}
{{- include "penstock.over" (dict "under" .root.Values.worker "over" .group "deep" (list "scale" "pods")) }}
{{- end }}
