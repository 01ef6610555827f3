"""Every setting of the project, in one file. The environment variables are described in docs/operations.md."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from project import env

BASE_DIR = Path(__file__).resolve().parent.parent
VAR = Path(os.environ.get("AGENTCHAT_VAR") or BASE_DIR / "var").resolve()
VAR.mkdir(parents=True, exist_ok=True)

DATABASE_URL = os.environ.get("DATABASE_URL", "").strip()
REDIS_URL = os.environ.get("REDIS_URL", "").strip()
EMBEDDED = not DATABASE_URL
"""One process, SQLite, no other service: what `make run` starts."""

DEBUG = env.flag("DEBUG", False)
PRODUCTION = env.flag("AGENTCHAT_PRODUCTION", not EMBEDDED)
"""Behind TLS: secure cookies, HSTS and the redirect to https are on."""
SECRET_KEY_FALLBACKS = env.words("SECRET_KEY_FALLBACKS")
SECRET_KEY = env.secret("SECRET_KEY", VAR / "secret_key", may_make=EMBEDDED and not PRODUCTION)
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "" if PRODUCTION else "127.0.0.1,localhost,[::1]")
if PRODUCTION and not ALLOWED_HOSTS:
    raise ImproperlyConfigured("ALLOWED_HOSTS is not set. Name the hosts under which people reach this server.")

INSTALLED_APPS = [
    "agentchat",
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "project.static.StaticFiles",
    "agentchat.web.security.SecurityHeaders",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "project.urls"
ASGI_APPLICATION = "project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "agentchat.web.context.shell",
            ],
            "builtins": ["agentchat.templatetags.agentchat"],
        },
    }
]


SQLITE_PRAGMAS = (
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-20000;"
    "PRAGMA mmap_size=134217728; PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=ON;"
)


def database() -> dict[str, Any]:
    if EMBEDDED:
        options = {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": SQLITE_PRAGMAS}
        path = VAR / "agentchat.sqlite3"
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path), "OPTIONS": options}
    config: dict[str, Any] = dict(dj_database_url.parse(DATABASE_URL))
    if config["ENGINE"] == "django.db.backends.sqlite3":
        config["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": SQLITE_PRAGMAS}
    elif config["ENGINE"] == "django.db.backends.postgresql":
        config["CONN_MAX_AGE"] = 0
        config["CONN_HEALTH_CHECKS"] = True  # else each connection of before a restart fails one request
        size = int(env.number("AGENTCHAT_DB_POOL", 10, least=2))
        config.setdefault("OPTIONS", {})["pool"] = {
            "min_size": 1,
            "max_size": size,
            "timeout": 5,
            "reconnect_timeout": 3,
        }
    else:
        raise ImproperlyConfigured("DATABASE_URL must begin with postgresql:// or sqlite://.")
    return config


DATABASES = {"default": database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CHANNEL_LAYERS = (
    {"default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}}
    if REDIS_URL
    else {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
)

LANGUAGE_CODE = "en"
TIME_ZONE = os.environ.get("AGENTCHAT_TIME_ZONE", "").strip() or "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = VAR / "static"
STATIC_ROOT.mkdir(exist_ok=True)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "project.static.ModuleManifestStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = not PRODUCTION
WHITENOISE_AUTOREFRESH = DEBUG

LOGIN_URL = "/accounts/login/"
LOGIN_REDIRECT_URL = "/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
SESSION_COOKIE_NAME = "agentchat_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "agentchat_csrf"
CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = PRODUCTION
SECURE_HSTS_SECONDS = 31_536_000 if PRODUCTION else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = PRODUCTION
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if PRODUCTION else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "agentchat.web.errors.csrf_failure"
CSRF_TRUSTED_ORIGINS = env.words("AGENTCHAT_TRUSTED_ORIGINS")
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_500_000

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "agentchat.api.errors.handle",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "agentchat",
    "DESCRIPTION": "Chats with agents, and the decisions that they wait for.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))},
    "loggers": {
        "channels_redis": {"level": "CRITICAL"},  # the bus says once, and in a sentence, that Redis is away
        "daphne": {"level": "WARNING"},
        "uvicorn": {"level": "WARNING"},
        "django.channels.server": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},  # what a client did wrong is in its answer
    },
}

AGENTCHAT_WORKSPACES = env.folders("AGENTCHAT_WORKSPACES", VAR / "workspaces")
AGENTCHAT_QUEUE = env.choice("AGENTCHAT_QUEUE", "inprocess", ("inprocess", "workers"))
AGENTCHAT_POLL_SECONDS = env.number("AGENTCHAT_POLL_SECONDS", 5, least=0.05)
AGENTCHAT_TICK_SECONDS = env.number("AGENTCHAT_TICK_SECONDS", 0.05, least=0)
AGENTCHAT_APPROVAL_TIMEOUT = env.number("AGENTCHAT_APPROVAL_TIMEOUT", 0, least=0) or None
AGENTCHAT_KEEP_DELTAS_SECONDS = env.number("AGENTCHAT_KEEP_DELTAS_SECONDS", 600, least=0)
AGENTCHAT_PARK_SECONDS = env.number("AGENTCHAT_PARK_SECONDS", 600, least=0.1)
AGENTCHAT_RUN_SECONDS = env.number("AGENTCHAT_RUN_SECONDS", 0, least=0)
AGENTCHAT_RUN_MEMORY_MB = env.number("AGENTCHAT_RUN_MEMORY_MB", 0, least=0)
AGENTCHAT_MAX_RUNS_OF_A_PERSON = int(env.number("AGENTCHAT_MAX_RUNS_OF_A_PERSON", 0, least=0))
AGENTCHAT_MAX_RUNS_IN_ALL = int(env.number("AGENTCHAT_MAX_RUNS_IN_ALL", 0, least=0))
AGENTCHAT_MAX_RUNS = int(env.number("AGENTCHAT_MAX_RUNS", 100, least=1))
