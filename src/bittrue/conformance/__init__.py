"""Test vectors, devices under test, and what can be said about a device."""
