"""The thin shell: gRPC in, the pure core, gRPC out. Only modules here know protobuf and the SDK."""
