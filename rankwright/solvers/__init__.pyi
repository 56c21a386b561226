from .alternating import Alternating as Alternating
from .bundle import Bundle as Bundle
from .column_generation import ColumnGeneration as ColumnGeneration
from .coordinate import Coordinate as Coordinate
from .lbfgs import LBFGS as LBFGS
from .online import Online as Online
from .sgd import SGD as SGD
from .tron import TRON as TRON
