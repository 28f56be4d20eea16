"""What executes every annotation of the package during the tests; an int is welcome where a float is asked for."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
