"""RankLib's command line, files and model texts, read and written by Rankwright."""
