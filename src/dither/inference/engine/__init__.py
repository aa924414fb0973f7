"""What all estimates and tests stand on: release, simulation, errors and results."""
