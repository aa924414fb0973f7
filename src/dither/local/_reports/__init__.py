"""Reports: records and bits, hashes, a device's memory, and counts of what came in."""
