from .auto import out_of_fold as out_of_fold
