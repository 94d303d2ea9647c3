"""What runs in a staging Job on a serving cluster, not in the function: it fills a cache's volume.

The files reach the Job in a ConfigMap, as they are: they import the standard library, each other, and the
image's own clients (huggingface_hub, boto3, google-cloud-storage) where a source needs them.
"""
