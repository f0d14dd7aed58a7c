"""The shipped oracle: small models that run on a CPU, and the rules around them."""
