"""Objectives and programs that misbehave, and the laws that a search keeps all the same."""
