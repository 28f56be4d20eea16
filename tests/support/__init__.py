"""What several test files share: oracles, small models, chains, commands, browsers, killed processes."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
"""The type checker of all annotations of the package during the tests; an int is accepted as a float."""
