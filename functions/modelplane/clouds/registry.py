"""The clouds there are: one line each."""

from collections.abc import Mapping

from modelplane.clouds.cloud import Cloud
from modelplane.clouds.eks import EKS
from modelplane.clouds.existing import EXISTING

CLOUDS: Mapping[str, Cloud] = {cloud.source: cloud for cloud in (EKS, EXISTING)}
