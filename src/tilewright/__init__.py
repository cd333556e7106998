"""Tilewright: auto-tuning search service for tensor kernels."""
