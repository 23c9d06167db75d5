"""Answers handed on to clients of our own."""
