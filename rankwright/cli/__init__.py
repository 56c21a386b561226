"""The command line: a file for each command, tiny ones beside their kin."""
