"""What every serving cluster gets, whichever stack it runs, in an order that has each need first."""

COMPONENTS: tuple[str, ...] = (
    "gateway-namespace",
    "chart-crds",
    "node-feature-discovery",
    "nvidia-dra-driver-namespace",
    "nvidia-dra-driver-quota",
    "nvidia-dra-driver",
    "inference-pool-crd",
    "envoy-gateway",
    "ai-gateway-crds",
    "ai-gateway",
    "gateway-proxy",
    "gateway-class",
    "gateway-headers",
    "gateway",
    "gateway-service",
    "prometheus",
)
