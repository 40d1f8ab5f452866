"""Django's settings, in sections. Values come from ``config.env``; apps read them as ``settings.TRELLIS``."""

from __future__ import annotations

import logging
from typing import Any

import dj_database_url
from csp.constants import NONCE
from django.urls import reverse_lazy

from config.env import ROOT, read_environment
from config.keys import DATABASE_NAME
from config.storages import named_storage
from config.telemetry.logs import configure_logging

BASE_DIR = ROOT
TRELLIS = read_environment()

# Core ----------------------------------------------------------------------------------------------------------------

DEBUG = TRELLIS.debug
assert TRELLIS.secret_key is not None
SECRET_KEY = TRELLIS.secret_key.get_secret_value()
ALLOWED_HOSTS = list(TRELLIS.allowed_hosts)
# The name under which probes are answered: any of ours, without its wildcard.
PROBED_HOST = next((name.lstrip(".*") for name in ALLOWED_HOSTS), "") or "localhost"
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
LOCALE_PATHS = [ROOT / "locale"]
FORMAT_MODULE_PATH = "config.formats"
TIME_ZONE = "UTC"
USE_I18N = len(LANGUAGES) > 1  # looking each text up in no catalogue takes a tenth of a page
USE_TZ = True

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",  # the site is our own
    "unfold.contrib.filters",
    "unfold.contrib.forms",
    "config.apps.AdminConfig",  # the routes look for the admin's pages, and commands need none
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "drf_standardized_errors",
    "django_filters",
    "django_htmx",
    "django_vite",
    "django_structlog",
    "csp",
    "servestatic",
    "workspaces",
    "audit",
    "mcp_servers",
    "mcp_servers.klavis",
    "chat",
    "config",
]

MIDDLEWARE = [
    "config.serving.middleware.ProbeMiddleware",
    "config.serving.middleware.StreamMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "config.serving.middleware.ContentSecurityPolicyMiddleware",
    "config.serving.middleware.ResponseHeadersMiddleware",
    "config.serving.static.StaticFilesMiddleware",
    "config.serving.middleware.CompressionMiddleware",
    "config.telemetry.tracing.TracingMiddleware",
    "config.serving.middleware.RequestLogMiddleware",
    "config.telemetry.metrics.RequestMetricsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    # With one language there is nothing to choose, and answers must not vary by what browsers prefer.
    *(["django.middleware.locale.LocaleMiddleware"] if len(LANGUAGES) > 1 else []),
    "config.serving.middleware.FormCharsetMiddleware",
    "config.serving.middleware.SlashMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "workspaces.middleware.WorkspaceMiddleware",
    "config.serving.middleware.LostFormMiddleware",
    "config.serving.middleware.DomainErrorMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "workspaces.context.workspaces",
                "audit.context.bell",
            ],
        },
    }
]

# Database ------------------------------------------------------------------------------------------------------------

if TRELLIS.database_url is None:
    DATABASES = {
        "default": {
            "ENGINE": "workspaces.database.sqlite",
            "NAME": TRELLIS.data_dir / DATABASE_NAME,
            # Each thread keeps its connection: opening one, with its pragmas, costs more than most queries.
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                # Writers queue at BEGIN instead of failing when a read turns into a write.
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                # FULL: a commit is on the disk when it returns, so a power cut loses nothing that somebody was told of.
                # fullfsync: on macOS a plain sync leaves it in the drive's memory.
                # recursive_triggers: otherwise REPLACE INTO slips past the triggers that keep the audit log append-only.
                "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA fullfsync=ON;"
                # journal_size_limit: after a large write the log beside the file gives its room back.
                "PRAGMA foreign_keys=ON;PRAGMA recursive_triggers=ON;PRAGMA journal_size_limit=16777216;",
            },
            # A file, as in real life: SQLite's shared in-memory database knows no WAL and locks whole tables.
            "TEST": {"NAME": TRELLIS.data_dir / "test.sqlite3"},
        }
    }
else:
    _postgresql: dict[str, Any] = {
        **dj_database_url.parse(TRELLIS.database_url, conn_max_age=0),
        "ENGINE": "workspaces.database.postgresql",
    }
    # Merged, not replaced: the address may carry options of its own, such as sslmode.
    _postgresql["OPTIONS"] = {
        # A server that is gone without a word is found out within half a minute: the system's own patience is two hours.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 25_000,
        # Of a server that takes connections and says nothing; without it each try lasts two minutes.
        "connect_timeout": 10,
        **_postgresql.get("OPTIONS", {}),
        "pool": {
            "min_size": 1,
            "max_size": TRELLIS.database_pool_size,
            "timeout": 10,
            # Each try to connect waits twice as long as the one before, and requests wait with it. By default that goes on
            # for five minutes, so that a database that is back would not be noticed for as long as it was away.
            "reconnect_timeout": 10,
        },
    }
    if TRELLIS.row_security:
        # Such a cursor outlives the transaction that was told whose rows it may read.
        _postgresql["DISABLE_SERVER_SIDE_CURSORS"] = True
    if TRELLIS.database_pooler == "transaction":
        # The next statement may reach another connection: cursors of the server's are out, and so is what is set for a
        # session. The database role has the timeouts.
        _postgresql["DISABLE_SERVER_SIDE_CURSORS"] = True
    else:
        # A process that stands still loses its locks, and whoever waits for one hears of it before their caller gives up.
        # Compiling a statement that reads much costs each of them a tenth of a second, and saves less.
        _postgresql["OPTIONS"].setdefault(
            "options", "-c idle_in_transaction_session_timeout=10s -c lock_timeout=20s -c jit=off"
        )
    DATABASES = {"default": _postgresql}

# Caches, nudges, background tasks ------------------------------------------------------------------------------------

CACHES: dict[str, dict[str, Any]]
if TRELLIS.redis_url is None:
    CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "LOCATION": "trellis",
        }
    }
    CHANNEL_LAYERS = {
        # At the default capacity of 100 this layer silently drops the newest message.
        "default": {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 2000}}
    }
    CELERY_BROKER_URL = "memory://localhost//"
    CELERY_BROKER_TRANSPORT_OPTIONS = {"polling_interval": 0.05}
else:
    CACHES = {
        "default": {
            "BACKEND": "config.caches.ForgetfulRedisCache",
            "LOCATION": TRELLIS.redis_url,
            "KEY_PREFIX": "trellis",
            "OPTIONS": {"socket_connect_timeout": 1, "socket_timeout": 2},
        }
    }
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "workspaces.delivery.channel_layer.ChannelLayer",
            "CONFIG": {"hosts": [TRELLIS.redis_url], "prefix": "trellis"},
        }
    }
    CELERY_BROKER_URL = TRELLIS.redis_url
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "visibility_timeout": 3600,
        # Without these a broker that hangs would be waited for without end.
        "socket_connect_timeout": 3,
        "socket_timeout": 5,
    }

CELERY_TASK_IGNORE_RESULT = True
CELERY_BEAT_SCHEDULER = "config.workers.scheduler:JobScheduler"
# Celery would close the pool of connections around each task, and with it those of turns that run beside.
CELERY_DB_REUSE_MAX = 1_000_000_000
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Nobody uses it, and a worker could not end while it waits for a Redis that stands still.
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# By default a worker ends after 100 tries, which is most of an hour.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_WORKER_CONSUMER = "config.workers.consumer:PatientConsumer"
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = TIME_ZONE
CELERY_ENABLE_UTC = True

# People --------------------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "workspaces.User"
AUTHENTICATION_BACKENDS = [
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
PASSWORD_RESET_TIMEOUT = 3600
LOGIN_URL = reverse_lazy("account_login")
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = reverse_lazy("account_login")

ACCOUNT_ADAPTER = "workspaces.pages.accounts.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_FORMS = {
    "login": "workspaces.pages.forms.SignInForm",
    "signup": "workspaces.pages.forms.InvitedSignupForm",
    "add_email": "workspaces.pages.forms.ChangeAddressForm",
    "reset_password": "workspaces.pages.forms.ResetForm",
    "reset_password_from_key": "workspaces.pages.forms.ForgottenPasswordForm",
    "set_password": "workspaces.pages.forms.FirstPasswordForm",
    "change_password": "workspaces.pages.forms.NewPasswordForm",
    "reauthenticate": "workspaces.pages.forms.PasswordAgainForm",
}
# Whoever changes how they sign in enters their password again.
ACCOUNT_REAUTHENTICATION_METHODS = ("password",)
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
# People may sign in before they answered the mail to their address: without a mail server nobody could.
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_CHANGE_EMAIL = (
    True  # an account has one address; another takes its place once its mail was answered
)
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = True
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = "Trellis: "
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if TRELLIS.is_https else "http"
ACCOUNT_RATE_LIMITS = {
    # Of each account from each network (`workspaces.login_limits`). What strangers on the same network try must
    # not stop a browser that the account knows, so there is no limit of all sign-ins from one address.
    "login": "",
    "login_failed": "10/m/ip,5/5m/key,20/h/key",
    "login_failed_known_browser": "5/5m/key,20/h/key",
    "login_failed_everywhere": "200/h/key",
    "reset_password": "20/m/ip,5/m/key",
    "reset_password_from_key": "20/m/ip",
    "signup": "20/m/ip",
    "sso": "60/m/ip",  # a whole office may be behind one address
    "change_password": "5/m/user",
}
SOCIALACCOUNT_ADAPTER = "workspaces.pages.single_sign_on.SingleSignOnAdapter"
# The provider's word on an address that is at one of its domains counts as much as a mail that was answered.
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_STORE_TOKENS = False
MFA_ADAPTER = "workspaces.pages.two_step.TwoStepAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
# Of one address, behind which a whole office may be; each sign-in is two requests.
MFA_RATE_LIMITS = {"webauthn_login": "60/m/ip"}
MFA_FORMS = {
    "activate_totp": "workspaces.pages.two_step.FirstCodeForm",
    "authenticate": "workspaces.pages.two_step.CodeForm",
    "add_webauthn": "workspaces.pages.passkeys.PasskeyForm",
    "login_webauthn": "workspaces.pages.passkeys.PasskeySignInForm",
    "authenticate_webauthn": "workspaces.pages.passkeys.PasskeyStepForm",
}
MFA_TOTP_TOLERANCE = 1  # a phone's clock may be half a minute off
# Without a mail server nobody confirms an address. The platform's owner can turn it off for an account.
MFA_ALLOW_UNVERIFIED_EMAIL = True

# Security ------------------------------------------------------------------------------------------------------------

_COOKIE_PREFIX = "__Host-" if TRELLIS.is_https else ""
SESSION_ENGINE = "workspaces.people.session_store"
SESSION_COOKIE_NAME = f"{_COOKIE_PREFIX}trellis-session"
SESSION_COOKIE_SECURE = TRELLIS.is_https
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = f"{_COOKIE_PREFIX}trellis-csrf"
CSRF_COOKIE_SECURE = TRELLIS.is_https
CSRF_COOKIE_HTTPONLY = True  # pages carry the token; no script needs to read the cookie
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = list(TRELLIS.public_origins)
CSRF_FAILURE_VIEW = "config.serving.errors.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
# Not no-referrer: browsers then send "Origin: null" with forms, which CSRF protection must refuse.
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if TRELLIS.is_https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = False
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = TRELLIS.request_max_bytes
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2000

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'", NONCE],
        "style-src": ["'self'", NONCE],
        "img-src": ["'self'", "data:", "blob:"],
        "media-src": ["'self'", "data:", "blob:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "manifest-src": ["'self'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "object-src": ["'none'"],
    }
}
# The admin's own interface evaluates expressions (Alpine) and sets inline styles; nothing else of ours may.
ADMIN_CONTENT_SECURITY_POLICY = {
    **CONTENT_SECURITY_POLICY["DIRECTIVES"],
    "script-src": ["'self'", "'unsafe-eval'", NONCE],
    "style-src": ["'self'", "'unsafe-inline'"],
}

# Static files --------------------------------------------------------------------------------------------------------

STATIC_URL = "/static/"
# `manage.py up` fills the folder here; sources that are newer than their copy are served in its place.
STATIC_ROOT = TRELLIS.static_root or ROOT / "staticfiles"
WEB_DIST = ROOT / "chat" / "web" / "dist"
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "config.serving.static.AppFilesFinder",
]
STATICFILES_DIRS = [("web", WEB_DIST)] if WEB_DIST.is_dir() else []
SERVESTATIC_USE_FINDERS = TRELLIS.static_root is None
SERVESTATIC_AUTOREFRESH = True
SERVESTATIC_MAX_AGE = 3600
SERVESTATIC_ALLOW_ALL_ORIGINS = False
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": TRELLIS.data_dir / "files"},
    },
    # Contents of the conversations' files; rows name them, and nothing serves them but views that ask whose they are.
    "artifacts": {
        "BACKEND": "chat.artifacts.storage.DiskStorage",
        "OPTIONS": {
            "location": TRELLIS.data_dir / "artifacts",
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    }
    if TRELLIS.artifact_storage is None
    else named_storage(TRELLIS.artifact_storage, TRELLIS.artifact_storage_options),
    # Scheduled files of the log; only whoever runs the platform reads them there.
    "audit_reports": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": TRELLIS.data_dir / "audit-reports",
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    }
    if TRELLIS.audit_report_storage is None
    else named_storage(TRELLIS.audit_report_storage, TRELLIS.audit_report_storage_options),
    "staticfiles": {"BACKEND": "config.serving.static.StaticFilesStorage"},
}
DJANGO_VITE = {
    "default": {
        "app_client_class": "config.serving.static.WebApp",
        "dev_mode": False,
        "static_url_prefix": "web",
        "manifest_path": WEB_DIST / "manifest.json",
    },
}

# Mail ----------------------------------------------------------------------------------------------------------------

DEFAULT_FROM_EMAIL = SERVER_EMAIL = TRELLIS.email_from
EMAIL_TIMEOUT = 20
if TRELLIS.email_host is None:
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = TRELLIS.data_dir / "mail"
else:
    EMAIL_BACKEND = "workspaces.delivery.smtp.EmailBackend"
    EMAIL_HOST = TRELLIS.email_host
    EMAIL_PORT = TRELLIS.email_port
    EMAIL_HOST_USER = TRELLIS.email_user
    EMAIL_HOST_PASSWORD = TRELLIS.email_password.get_secret_value()
    EMAIL_USE_TLS = TRELLIS.email_security == "starttls"
    EMAIL_USE_SSL = TRELLIS.email_security == "tls"

# REST ----------------------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "config.rest.schema.ApiSchema",
    "EXCEPTION_HANDLER": "drf_standardized_errors.handler.exception_handler",
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "NUM_PROXIES": 0,  # config.serving.edge has read the proxies' headers already, and removed them
}
_ERROR_CODES = (
    *("400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "429", "500"),
    *("503", "507"),
)
DRF_STANDARDIZED_ERRORS = {
    "EXCEPTION_HANDLER_CLASS": "config.rest.api.ApiExceptionHandler",
    "EXCEPTION_FORMATTER_CLASS": "config.rest.api.ApiErrors",
    "ALLOWED_ERROR_STATUS_CODES": _ERROR_CODES,
    "ERROR_SCHEMAS": dict.fromkeys(_ERROR_CODES, "config.rest.schema.ErrorSerializer"),
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Trellis API",
    "DESCRIPTION": "Everything people can do in Trellis, for programs. Send an API token as `Authorization: Bearer …`.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PUBLIC": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": None,
    "SWAGGER_UI_SETTINGS": {
        "deepLinking": True,
        "persistAuthorization": False,
        "validatorUrl": None,
    },
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "config.rest.schema.finish",
    ],
    "ENUM_NAME_OVERRIDES": {
        "TurnStatusEnum": "chat.api.shapes.TURN_STATUSES",
        "ToolCallStatusEnum": "chat.api.shapes.TOOL_CALL_STATUSES",
        "ServerStatusEnum": "mcp_servers.models.ServerStatus",
        "ArtifactKindEnum": "chat.api.shapes.ARTIFACT_KINDS",
    },
}

# Admin ---------------------------------------------------------------------------------------------------------------

UNFOLD = {
    "SITE_TITLE": "Trellis",
    "SITE_HEADER": "Trellis",
    "SITE_SUBHEADER": "workspaces.admin.head.current_workspace",
    "SITE_DROPDOWN": "workspaces.admin.head.other_workspaces",
    "SITE_ICON": lambda _request: "/static/web/favicon.svg",
    "STYLES": [lambda _request: "/static/web/admin.css"],
    "SCRIPTS": [lambda _request: "/static/web/admin.js"],
    "THEME": "workspaces.admin.head.theme",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "/static/web/favicon.svg"},
    ],
    "SITE_URL": "/",
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    # The product's own, from the tokens of the web app (chat/web/src/styles/theme.css).
    "COLORS": {
        "base": {
            "50": "oklch(98.2% .004 155)",
            "100": "oklch(96.5% .005 155)",
            "200": "oklch(93% .007 155)",
            "300": "oklch(87% .009 155)",
            "400": "oklch(72% .012 160)",
            "500": "oklch(53% .015 163)",
            "600": "oklch(45% .017 165)",
            "700": "oklch(37% .018 165)",
            "800": "oklch(28.5% .011 165)",
            "900": "oklch(22.5% .009 165)",
            "950": "oklch(19% .008 165)",
        },
        "primary": {
            "50": "oklch(98% .016 158)",
            "100": "oklch(95% .035 158)",
            "200": "oklch(91% .065 158)",
            "300": "oklch(85% .1 158)",
            "400": "oklch(78% .13 158)",
            "500": "oklch(72% .13 158)",
            "600": "oklch(46% .105 158)",
            "700": "oklch(41% .095 158)",
            "800": "oklch(35% .08 158)",
            "900": "oklch(29% .06 158)",
            "950": "oklch(21% .045 160)",
        },
    },
}

# Logs ----------------------------------------------------------------------------------------------------------------

LOGGING_CONFIG = None
# What a caller did, or that they left, is nothing that whoever runs Trellis could mend.
DJANGO_STRUCTLOG_STATUS_4XX_LOG_LEVEL = logging.INFO
DJANGO_STRUCTLOG_REQUEST_CANCELLED_LOG_LEVEL = logging.INFO
configure_logging(level=TRELLIS.log_level, as_json=TRELLIS.log_format == "json")
