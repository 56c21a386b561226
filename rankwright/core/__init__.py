"""The basis of the other packages: types, the tie rule, kernels, threads and random streams."""
