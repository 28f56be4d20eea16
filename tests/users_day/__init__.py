"""A user's day with files of their own; see a_users_day.py."""
