"""Answers drawn for people: ``terminal`` makes lines of styled spans, ``lines`` prints, wraps and measures them."""
