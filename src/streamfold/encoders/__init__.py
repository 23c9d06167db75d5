"""Unified events to the bytes of a wire dialect."""
