"""Recordings of streams: a file format, what is kept out of it, and other formats in and out."""
