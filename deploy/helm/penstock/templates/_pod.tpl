{{- /* Held by every pod: the restricted pod security standard, and a file system that nobody writes to. */}}
{{- define "penstock.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "penstock.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "penstock.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* The deployment `name` of a `component` (executor, worker, api, gateway), with its budget and what scales it by CPU. `env`: variables
       by name; `pods`: what differs from .Values.pods. */}}
{{- define "penstock.deployment" -}}
{{- $root := .root }}
{{- $pods := include "penstock.over" (dict "under" $root.Values.pods "over" .pods "deep" (list "resources")) | fromYaml }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "penstock.name" $root }}-{{ .name }}
  labels:
    {{- include "penstock.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
spec:
  {{- if eq .scale.by "none" }}
  replicas: {{ .replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "penstock.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .name }}
  strategy:
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    metadata:
      labels:
        {{- include "penstock.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .name }}
        {{- with $pods.labels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        # Pods are replaced when what they read at their start has changed.
        checksum/settings: {{ printf "%s%s" (include "penstock.settings" $root) (toJson $root.Values.secret) | sha256sum }}
        {{- if not $root.Values.podMonitor.enabled }}
        prometheus.io/scrape: "true"
        prometheus.io/port: "8080"
        {{- end }}
        {{- with $pods.annotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "penstock.serviceAccount" $root }}
      {{- include "penstock.pullSecrets" $root | nindent 6 }}
      # Longer than PENSTOCK_GRACE, so that running work may finish.
      terminationGracePeriodSeconds: {{ add $root.Values.grace 15 }}
      securityContext:
        {{- include "penstock.podSecurity" . | nindent 8 }}
      {{- with $pods.spread }}
      topologySpreadConstraints:
        {{- range . }}
        - maxSkew: 1
          topologyKey: {{ . }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "penstock.selector" $root | nindent 14 }}
              app.kubernetes.io/component: {{ $.name }}
        {{- end }}
      {{- end }}
      {{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
      {{- with get $pods $key }}
      {{ $key }}:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "penstock.image" $root }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          args: [{{ .component }}, --wait, 60s]
          envFrom:
            - configMapRef: {name: {{ include "penstock.name" $root }}}
            {{- with $pods.envFrom }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          env:
            - name: PENSTOCK_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            {{- $secret := include "penstock.secret" $root }}
            - name: PENSTOCK_DATABASE_URL
              valueFrom: {secretKeyRef: {name: {{ index $root.Values.secret.services .component | default $secret }}, key: database-url}}
            - name: PENSTOCK_BROKER_URL
              valueFrom: {secretKeyRef: {name: {{ $secret }}, key: broker-url, optional: true}}
            - name: PENSTOCK_SECRETS_KEY
              valueFrom: {secretKeyRef: {name: {{ $secret }}, key: secrets-key, optional: true}}
            {{- if eq .component "api" }}
            - name: PENSTOCK_DATABASE_READ_URL
              valueFrom: {secretKeyRef: {name: {{ $secret }}, key: database-read-url, optional: true}}
            - name: PENSTOCK_OIDC_CLIENT_SECRET
              valueFrom: {secretKeyRef: {name: {{ $secret }}, key: oidc-client-secret, optional: true}}
            {{- end }}
            {{- range $name, $value := .env }}
            - name: {{ $name }}
              value: {{ $value | quote }}
            {{- end }}
            {{- with $pods.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            - {name: health, containerPort: 8080}
            {{- if has .component (list "api" "gateway") }}
            - {name: http, containerPort: 8000}
            {{- end }}
          {{- if has .component (list "api" "gateway") }}
          # Until every proxy has heard that this pod takes no more requests.
          lifecycle: {preStop: {exec: {command: [sleep, "5"]}}}
          {{- end }}
          startupProbe:
            httpGet: {path: /live, port: health}
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            httpGet: {path: /live, port: health}
            periodSeconds: 10
            timeoutSeconds: 5
          readinessProbe:
            httpGet: {path: /ready, port: health}
            periodSeconds: 5
            timeoutSeconds: 5
          resources:
            {{- toYaml $pods.resources | nindent 12 }}
          securityContext:
            {{- include "penstock.containerSecurity" . | nindent 12 }}
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            {{- with $pods.volumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {}
        {{- with $pods.volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "penstock.name" $root }}-{{ .name }}
  labels:
    {{- include "penstock.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
spec:
  maxUnavailable: {{ $pods.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "penstock.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .name }}
{{- if eq .scale.by "cpu" }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "penstock.name" $root }}-{{ .name }}
  labels:
    {{- include "penstock.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ include "penstock.name" $root }}-{{ .name }}}
  minReplicas: {{ max 1 .scale.min }}
  maxReplicas: {{ .scale.max }}
  metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: {{ .scale.cpu }}}}
{{- end }}
{{- end }}

{{- /* The deployment of a component that serves HTTP, and its service. `of`: its values. */}}
{{- define "penstock.http" -}}
{{- $root := .root }}
{{- $name := .name }}
{{- with .of }}
{{- if .enabled }}
{{- include "penstock.deployment" (dict "root" $root "component" $name "name" $name
  "replicas" .replicas "scale" .scale "pods" .pods "env" (dict "PENSTOCK_API_HOST" "0.0.0.0")) }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "penstock.name" $root }}-{{ $name }}
  labels:
    {{- include "penstock.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $name }}
  {{- with .service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .service.type }}
  selector:
    {{- include "penstock.selector" $root | nindent 4 }}
    app.kubernetes.io/component: {{ $name }}
  ports:
    - {name: http, port: {{ .service.port }}, targetPort: http}
{{- end }}
{{- end }}
{{- end }}
