"""What the front door needs to know: where an endpoint is, and which share of the requests it takes."""
