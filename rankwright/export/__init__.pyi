from .folder import check_releases as check_releases
from .folder import export_model as export_model
from .folder import verify_export as verify_export
