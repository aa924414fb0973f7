"""Before anything is asked: how many rows a test needs, what privacy costs, how ways compare."""
