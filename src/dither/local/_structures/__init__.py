"""Values with structure: several attributes, marginals, sets, pairs, large domains, time.

Each rests on the frequency channels and adds who reports what. One file each.
"""
