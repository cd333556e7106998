"""Alembic's scripts: what brings a database from one schema to the next."""
