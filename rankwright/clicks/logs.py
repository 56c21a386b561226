"""Click logs and their files: classes and functions of `rankwright.data` that are public here."""

from rankwright.data.click_files import load_log as load_log
from rankwright.data.click_files import save_log as save_log
from rankwright.data.click_log import ClickLog as ClickLog
from rankwright.data.click_log import Interleaving as Interleaving
from rankwright.data.click_log import concatenate_logs as concatenate_logs
