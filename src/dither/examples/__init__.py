"""Shows, not library: the demo, the tour of attacks, planted mistakes, the paper's reproduction.

Commands run them; nothing in the library imports them.
"""
