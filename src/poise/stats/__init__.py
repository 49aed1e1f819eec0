"""Robust streaming statistics. All are causal and give the same numbers however the stream is cut."""
