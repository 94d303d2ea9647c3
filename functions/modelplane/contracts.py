"""Every string that two parts of the fleet agree on: API groups, labels, env names, ports, reasons.

A contract lives here once; a test refuses a `modelplane.ai/` literal anywhere else in the package.
Field managers, users' selectors and running pods depend on these values: changing one is a release note.
"""

from typing import Final

# --- API groups and versions -------------------------------------------------------------------
GROUP: Final = "modelplane.ai"
INFRA_GROUP: Final = "infrastructure.modelplane.ai"
API: Final = f"{GROUP}/v1alpha1"
INFRA_API: Final = f"{INFRA_GROUP}/v1alpha1"

KUBERNETES_API: Final = "kubernetes.m.crossplane.io/v1alpha1"
HELM_API: Final = "helm.m.crossplane.io/v1beta1"
PROTECTION_API: Final = "protection.crossplane.io/v1beta1"
ACTIVATION_API: Final = "apiextensions.crossplane.io/v1alpha1"
GATEWAY_API: Final = "gateway.networking.k8s.io/v1"
INFERENCE_API: Final = "inference.networking.k8s.io/v1"
ENVOY_API: Final = "gateway.envoyproxy.io/v1alpha1"
GROVE_API: Final = "grove.io/v1alpha1"
LWS_API: Final = "leaderworkerset.x-k8s.io/v1"
KAI_API: Final = "scheduling.run.ai/v2"
KAI_CONFIG_API: Final = "kai.scheduler/v1"
DRA_API: Final = "resource.k8s.io/v1"
MODELEXPRESS_GROUP: Final = "modelexpress.nvidia.com"
EPP_CONFIG_API: Final = "llm-d.ai/v1alpha1"
RBAC_API: Final = "rbac.authorization.k8s.io/v1"
TRAEFIK_API: Final = "traefik.io/v1alpha1"
METALLB_API: Final = "metallb.io/v1beta1"
CERT_MANAGER_API: Final = "cert-manager.io/v1"
AI_GATEWAY_API: Final = "aigateway.envoyproxy.io/v1beta1"
DISCOVERY_API: Final = "discovery.k8s.io/v1"
CRD_API: Final = "apiextensions.k8s.io/v1"
EC2_API: Final = "ec2.aws.m.upbound.io/v1beta1"
EKS_API: Final = "eks.aws.m.upbound.io/v1beta1"
IAM_API: Final = "iam.aws.m.upbound.io/v1beta1"
EFS_API: Final = "efs.aws.m.upbound.io/v1beta1"
KMS_API: Final = "kms.aws.m.upbound.io/v1beta1"
LOGS_API: Final = "cloudwatchlogs.aws.m.upbound.io/v1beta1"

# --- Crossplane's own marks --------------------------------------------------------------------
COMPOSITE_LABEL: Final = "crossplane.io/composite"
RESOURCE_NAME_ANNOTATION: Final = "crossplane.io/composition-resource-name"
EXTERNAL_NAME_ANNOTATION: Final = "crossplane.io/external-name"
EXTERNAL_CREATE_PREFIX: Final = "crossplane.io/external-create-"
IN_USE_LABEL: Final = "crossplane.io/in-use"
USAGE_DETAILS_ANNOTATION: Final = "crossplane.io/usage-details"
USAGE_ANNOTATION_PREFIX: Final = "usage.crossplane.io/"

# --- Labels and annotations --------------------------------------------------------------------
# Identity of a replica and its endpoint; ModelService selectors and the deletion guard read them.
DEPLOYMENT_LABEL: Final = f"{GROUP}/deployment"
CLUSTER_LABEL: Final = f"{GROUP}/cluster"
REPLICA_INDEX_LABEL: Final = f"{GROUP}/replica-index"
CACHE_LABEL: Final = f"{GROUP}/modelcache"
# On what a staging run needs: which artifact it stages.
ARTIFACT_LABEL: Final = f"{GROUP}/artifact"
# On what a cluster keeps for users it has none of: the first of two looks; the second takes it away.
UNUSED_ANNOTATION: Final = f"{GROUP}/unused"
# On a ModelCacheReplica: the cluster selector it was placed under, so that a cluster whose labels changed can
# be told from a cache whose selector changed.
CACHE_SELECTOR_ANNOTATION: Final = f"{GROUP}/cluster-selector"
# The team a serving-cluster namespace belongs to; network policies select on it.
NAMESPACE_LABEL: Final = f"{GROUP}/namespace"
# The composed key of a Release or Object, for people and for Usages found by label.
RESOURCE_LABEL: Final = f"{GROUP}/resource"
# What a leaf of a cluster is to its teardown (kubeconfig, gateway, controller, ...).
ROLE_LABEL: Final = f"{GROUP}/role"
# On serving pods only (Standalone, gang leader): InferencePools and monitors select on it.
SERVING_LABEL: Final = f"{GROUP}/serving"
# On every pod of an engine: its own workload's selector and affinity.
WORKLOAD_LABEL: Final = f"{GROUP}/workload"
REPLICA_LABEL: Final = f"{GROUP}/replica"
ENGINE_LABEL: Final = f"{GROUP}/engine"
LWS_ROLE_LABEL: Final = f"{GROUP}/lws-role"
CLIQUE_ROLE_LABEL: Final = f"{GROUP}/clique-role"
EPP_CHECKSUM_ANNOTATION: Final = f"{GROUP}/epp-config-checksum"
MODELEXPRESS_LABEL: Final = f"{GROUP}/modelexpress"
POOL_LABEL: Final = f"{GROUP}/pool"
# On subnets of a cluster's network.
ZONE_LABEL: Final = f"{GROUP}/zone"
SUBNET_TIER_LABEL: Final = f"{GROUP}/subnet-tier"
GPU_LABEL: Final = f"{GROUP}/gpu"
# On a ModelReplica: which template of its deployment it runs; Rolling tells old from new by it.
REVISION_ANNOTATION: Final = f"{GROUP}/template-revision"
# On a ModelReplica that does not serve yet: the name of the one that goes once it does.
REPLACES_ANNOTATION: Final = f"{GROUP}/replaces"
RESERVED_LABEL_PREFIX: Final = f"{GROUP}/"
KAI_QUEUE_LABEL: Final = "kai.scheduler/queue"
KAI_PRIORITY_KEY: Final = "priorityClassName"
LLMD_ROLE_LABEL: Final = "llm-d.ai/role"
LLMD_SERVING_LABEL: Final = "llm-d.ai/inference-serving"
LLMD_ENGINE_LABEL: Final = "llm-d.ai/engine-type"

# Values of the role label on pods that network policies and people look for.
ROLE_PICKER: Final = "picker"
# Values of it on what a serving stack installs: what holds a cloud load balancer, and what runs controllers.
ROLE_GATEWAY: Final = "gateway"
ROLE_CONTROLLER: Final = "controller"
# On what it only looks at: an install of somebody else's that would fight with ours.
ROLE_RIVAL: Final = "rival"
# On a cloud's leaves, beside the cluster label: credentials, API, nodes and network without which what a
# stack installed could not be taken down. The ServingStack composes a Usage of each.
ROLE_LIFELINE: Final = "lifeline"
# On what the kubernetes provider finds on a cluster for us: a pool's Nodes, and what DRA drivers publish.
ROLE_NODE: Final = "node"
ROLE_SLICE: Final = "slice"

GPU_TAINT: Final = "nvidia.com/gpu"

# --- Namespaces --------------------------------------------------------------------------------
# Control plane and serving clusters alike: what belongs to the platform, not to a team.
SYSTEM_NAMESPACE: Final = "modelplane-system"
MODELEXPRESS_NAMESPACE: Final = "modelexpress-system"
MONITORING_NAMESPACE: Final = "monitoring"
ENVOY_NAMESPACE: Final = "envoy-gateway-system"
AI_GATEWAY_NAMESPACE: Final = "envoy-ai-gateway-system"
DRA_DRIVER_NAMESPACE: Final = "nvidia-dra-driver"
TRAEFIK_NAMESPACE: Final = "traefik-system"
METALLB_NAMESPACE: Final = "metallb-system"

# --- Well-known names --------------------------------------------------------------------------
CLUSTER_GATEWAY: Final = "inference-gateway"
CLUSTER_GATEWAY_CLASS: Final = "envoy"
# On an existing cluster, where "envoy" may be somebody else's.
OWN_GATEWAY_CLASS: Final = "modelplane"
FLEET_GATEWAY: Final = "modelplane"
FLEET_GATEWAY_CLASS: Final = "traefik"
# Gateway, class and settings of a front door that is Envoy: none of them is the other's.
FLEET_ENVOY: Final = "modelplane-envoy"
# ModelServices look up the InferenceGateway of this name (v0.4's de-facto singleton).
DEFAULT_GATEWAY: Final = "default"
IN_CLUSTER_CONFIG: Final = "modelplane-in-cluster"
KAI_SCHEDULER: Final = "kai-scheduler"
KAI_ROOT_QUEUE: Final = "modelplane-root"
KAI_QUEUE: Final = "modelplane"
# KAI's own class for what must not be preempted (its chart makes it). A Deployment has it by itself, a gang
# has less: single pods would push gangs out.
KAI_PRIORITY: Final = "inference"
MODELEXPRESS_SERVER: Final = "modelexpress-server"
GPU_DEVICE_CLASS: Final = "gpu.nvidia.com"
# How a member asks for EFA interfaces: the class that chart aws-dranet makes, the driver behind any class, or
# the device plugin's resource.
EFA_DEVICE_CLASS: Final = "efa.networking.k8s.aws"
EFA_DRIVER: Final = "dra.net"
EFA_RESOURCE: Final = "vpc.amazonaws.com/efa"
# What Envoy Gateway asks about every route; the chart gives Deployment and Service this name.
AI_GATEWAY_HOST: Final = f"ai-gateway-controller.{AI_GATEWAY_NAMESPACE}.svc.cluster.local"
# The network policy of a team's namespace on a serving cluster.
TEAM_POLICY: Final = "modelplane-ingress"
# The copy there of the mirror's pull Secret, for what we run beside engines.
PULL_SECRET: Final = "modelplane-pull"
FUNCTION_NAME: Final = "modelplane-function"
KUBECONFIG: Final = "Kubeconfig"
KUBECONFIG_KEY: Final = "kubeconfig"
EKS_CLUSTER: Final = "EKSCluster"
EKS_NODE_POOL: Final = "EKSNodePool"
EKS_NETWORK: Final = "EKSNetwork"
# The pool that an EKSCluster adds for controllers.
SYSTEM_POOL: Final = "system"
SYSTEM_ROLE: Final = "System"
GPU_ROLE: Final = "GPU"
# ReadWriteMany volumes of a cluster on EKS, as v0.4 named their class.
EFS_STORAGE_CLASS: Final = "modelplane-rwx-efs"
EBS_STORAGE_CLASS: Final = "modelplane-ebs-gp3"
ENGINE_CONTAINER: Final = "engine"
# The proxy before a decode engine; no container of a member may take its name.
PROXY_CONTAINER: Final = "pd-sidecar"
DEVICES_CLAIM: Final = "devices"
# AllocationResultsMaxSize (k8s.io/api, resource/v1/types.go): no ResourceClaim is allocated more; a pod may
# have several.
DEVICES_A_CLAIM: Final = 32
CACHE_VOLUME: Final = "model-cache"
SHM_VOLUME: Final = "dshm"

# --- Ports and paths ---------------------------------------------------------------------------
ENGINE_PORT: Final = 8000
DECODE_PORT: Final = 8001
HEALTH_PATH: Final = "/health"
EPP_PORT: Final = 9002
EPP_HEALTH_PORT: Final = 9003
EPP_METRICS_PORT: Final = 9090
MODELEXPRESS_PORT: Final = 8001
NIXL_PORT: Final = 5557
AI_GATEWAY_PORT: Final = 1063
FLEET_GATEWAY_PORT: Final = 8000
FLEET_GATEWAY_TLS_PORT: Final = 8443
CACHE_MOUNT: Final = "/mnt/models"
STAGING_MOUNT: Final = "/mnt/artifact"

# --- Environment injected into engines ---------------------------------------------------------
ENV_LEADER_ADDRESS: Final = "MODELPLANE_LEADER_ADDRESS"
ENV_RANK: Final = "MODELPLANE_RANK"
ENV_GANG_SIZE: Final = "MODELPLANE_GANG_SIZE"
ENV_RESERVED_PREFIX: Final = "MODELPLANE_"
ENV_HF_CACHE: Final = "HF_HUB_CACHE"
ENV_HF_TOKEN: Final = "HF_TOKEN"
# Between a staging Job and what runs in it (modelplane.staging spells them out: it is alone over there).
ENV_STAGING_ROOT: Final = "STAGING_ROOT"
ENV_STAGING_SOURCE: Final = "STAGING_SOURCE"
ENV_STAGING_LOCATION: Final = "STAGING_LOCATION"
ENV_STAGING_REVISION: Final = "STAGING_REVISION"
ENV_STAGING_ID: Final = "STAGING_ID"
ENV_STAGING_REPORT: Final = "STAGING_REPORT"
ENV_STAGING_REGISTRY_AUTH: Final = "STAGING_REGISTRY_AUTH"

# --- Values of spec fields ---------------------------------------------------------------------
STANDARD: Final = "Standard"
DYNAMO: Final = "Dynamo"
PREFILL_DECODE: Final = "PrefillDecode"
PREFILL: Final = "Prefill"
DECODE: Final = "Decode"
STANDALONE: Final = "Standalone"
LEADER: Final = "Leader"
WORKER: Final = "Worker"
EKS: Final = "EKS"
EXISTING: Final = "Existing"
MANAGED: Final = "Managed"
PROVIDED: Final = "Provided"
NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
FABRIC_NONE: Final = "None"
FABRIC_EFA: Final = "EFA"
FABRIC_INFINIBAND: Final = "InfiniBand"
HUGGING_FACE: Final = "HuggingFace"
BUCKET: Final = "Bucket"
OCI: Final = "OCI"
CLAIM: Final = "PersistentVolumeClaim"
TRAEFIK: Final = "Traefik"
ENVOY: Final = "Envoy"
# Phases of a ModelCacheReplica; what waits for weights waits for the third.
CACHE_PENDING: Final = "Pending"
CACHE_HYDRATING: Final = "Hydrating"
CACHE_READY: Final = "Ready"
CACHE_FAILED: Final = "Failed"

# --- Condition types ---------------------------------------------------------------------------
READY: Final = "Ready"
ACCEPTED: Final = "Accepted"
CLUSTER_READY: Final = "ClusterReady"
BACKEND_READY: Final = "BackendReady"
REQUIREMENTS_MET: Final = "RequirementsMet"
CONTROLLER_READY: Final = "ControllerReady"
REPLICAS_SCHEDULED: Final = "ReplicasScheduled"
REPLICAS_READY: Final = "ReplicasReady"
CACHE_RESOLVED: Final = "ModelCacheResolved"
MODEL_ACCEPTED: Final = "ModelAccepted"
MODEL_READY: Final = "ModelReady"
REFERENCES_RESOLVED: Final = "ReferencesResolved"
ENDPOINTS_RESOLVED: Final = "EndpointsResolved"
ROUTING_READY: Final = "RoutingReady"
CLUSTERS_MATCHED: Final = "ClustersMatched"
ARTIFACT_READY: Final = "ArtifactReady"
GATEWAY_READY: Final = "GatewayReady"
COMPONENTS_READY: Final = "ComponentsReady"
NETWORK_READY: Final = "NetworkReady"
NODE_POOLS_READY: Final = "NodePoolsReady"
NODES_READY: Final = "NodesReady"

# Reasons every kind shares; a kind's own reasons stand beside its composer.
REASON_UNDETERMINED: Final = "Undetermined"
REASON_INVALID_SPEC: Final = "InvalidSpec"
# Admitted by the API, not composed by this release.
REASON_SOURCE_NOT_SUPPORTED: Final = "SourceNotSupported"

# --- The pipeline ------------------------------------------------------------------------------
# Input of a step in a platform's own Composition (docs/platform-reuse): which kind's composer to run.
STEP_KIND: Final = "Step"
STEP_USAGES: Final = "Usages"
# Pipeline context: what is not composed yet, and why, by composed key; people see it in a render's context.
HELD_BACK_CONTEXT: Final = f"{GROUP}/held-back"
