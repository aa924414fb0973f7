"""From noisy measurements to values with intervals: post-processing, after all is paid for."""
