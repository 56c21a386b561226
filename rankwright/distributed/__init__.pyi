from .cluster import executor as executor
from .evaluation import evaluate as evaluate
from .evaluation import predict as predict
from .evaluation import rank as rank
from .evaluation import write_run as write_run
from .fitting import fit as fit
from .partitions import Partitions as Partitions
