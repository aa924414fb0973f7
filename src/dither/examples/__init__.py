"""Shows, not library: the demo, the tour of attacks, mechanisms with planted mistakes.

Commands run them; nothing in the library imports them.
"""
