"""The lab: what people did before differential privacy, attacks, and audits of claims.

- `dither.lab.anonymize`: masking, k-anonymity and its kin, measured.
- `dither.lab.attack`: games, attacks and verdicts.
- `dither.lab.assess`: a release attacked by singling out, linkability and inference, as a page.
- `dither.lab.audit`: empirical lower bounds on the epsilon of any mechanism.
- `dither.lab.compare`: a synthetic table held against the real one.

Every release is a black box to it.
"""
