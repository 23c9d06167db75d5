"""What goes back to a provider: the answer as items of the next request, and the results of its calls.

One module a surface. They know blocks and the request shapes of their provider, and no wire.
"""
