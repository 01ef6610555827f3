"""How static files are named in production."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):
    """Hashed names, also inside `import` statements of ES modules (Django leaves these out unless asked)."""

    support_js_module_import_aggregation = True
