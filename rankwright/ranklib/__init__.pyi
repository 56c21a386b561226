from .conversion import load_ranklib as load_ranklib
from .conversion import save_ranklib as save_ranklib
