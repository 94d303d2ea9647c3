"""From an engine to what runs on its cluster: Deployment, LeaderWorkerSet or PodCliqueSet, and its edge."""
