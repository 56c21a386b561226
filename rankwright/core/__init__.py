"""What every other package stands on: types, the tie rule, kernels, threads and random streams."""
