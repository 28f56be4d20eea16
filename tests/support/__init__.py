"""What several test files share: oracles, small models, chains, commands, browsers, killed processes."""

from support.typecheck import checked

__all__ = ["checked"]
