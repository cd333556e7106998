"""A fleet of simulated workers over real HTTP, and what it says about the server."""
