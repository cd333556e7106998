"""The version of generated code."""

#: Part of a candidate's identity: raised whenever the same scheduled program may become other instructions.
CODEGEN_VERSION = "3"
