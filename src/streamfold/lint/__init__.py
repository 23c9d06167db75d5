"""The wire linter: what a stream does that its surface does not, and what that breaks for whom."""
