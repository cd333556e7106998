"""Devices that cannot compile: builders make programs and data for them, and they run those and nothing else.

A program is a static executable (compiler/codegen/standalone), the data the workload's inputs with what must
come of them. Both are artifacts: bytes under their SHA-256, made by a builder that the server trusts, checked
by the device before anything is run. `runner.py` is what a device needs: one file, the standard library.
"""
