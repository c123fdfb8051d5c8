"""Engines: live servers, servers that we launch, and replays."""
