{{- define "trellis.labels" -}}
app.kubernetes.io/name: trellis
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "trellis.selector" -}}
app.kubernetes.io/name: trellis
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "trellis.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "trellis.claim" -}}
{{ .Values.storage.existingClaim | default (printf "%s-data" .Release.Name) }}
{{- end }}

{{/* One pod: context is a dict of root, component, command, resources, probes. */}}
{{- define "trellis.pod" -}}
metadata:
  labels:
    {{- include "trellis.selector" . | nindent 4 }}
  annotations:
    checksum/settings: {{ toYaml .root.Values.settings | sha256sum }}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 40
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- if eq .component "server" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "trellis.selector" . | nindent 10 }}
  {{- end }}
  {{- if eq .component "migrate" }}
  restartPolicy: OnFailure
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "trellis.image" .root }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      command: {{ toJson .command }}
      envFrom:
        - secretRef: {name: {{ .root.Values.existingSecret }}}
      env:
        {{- range $name, $value := .root.Values.settings }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
      {{- if .has_probes }}
      # The cluster goes on sending requests for some seconds after it has told a pod to end.
      lifecycle:
        preStop:
          exec: {command: ["sleep", "5"]}
      ports:
        - {name: http, containerPort: 8000}
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 3
        timeoutSeconds: 5
        failureThreshold: 2
      {{- end }}
      resources: {{ toYaml .resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: tmp, mountPath: /tmp}
  volumes:
    - name: tmp
      emptyDir: {}
    - name: data
      {{- if eq .component "migrate" }}
      emptyDir: {}
      {{- else }}
      persistentVolumeClaim: {claimName: {{ include "trellis.claim" .root }}}
      {{- end }}
{{- end }}
