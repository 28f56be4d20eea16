"""What several test files share: oracles, small models, chains, commands, browsers, killed processes."""
